#!/bin/sh
# sm.sh OUT FLAG...: the campaigns of configs
out=$1; shift
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH=$here/lib
m=$here/bin/megalith
while read name shape cap work count; do
timeout ${LIMIT:-70} $m tune --shape $shape --capacity $cap --workloads "$work" --proposer external \
  --trials $count --store $out/sm.db --name $name --quiet "$@" >$out/sm-$name.log 2>&1 </dev/null &
pid=$!
for i in $(seq 60); do $m campaign status --store $out/sm.db --name $name >/dev/null 2>&1 && break; sleep 0.5; done
for f in $here/sm/$name/*.json; do $m campaign submit $f --name $name --store $out/sm.db >/dev/null; done
wait $pid; echo "$name exit $?"
cat $out/sm-$name.log
$m campaign history $name --store $out/sm.db
done <$here/sm/list
