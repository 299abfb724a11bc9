#!/usr/bin/env python3
"""Checks that no register which a warpgroup product (HGMMA) still reads is overwritten.

    build/tests/tools/dump_kernels FOLDER llama-1b-int8-warpgroups-64
    nvdisasm -c FOLDER/llama-1b-int8-warpgroups-64.cubin | tests/tools/product_registers.py

A product reads its weights (matrix A) from registers until the next WARPGROUP.DEPBAR, the wait for
products (PTX ISA, wgmma.wait_group). ptxas of CUDA 13.0 considers these registers free from the
product on. The script reads machine code from nvdisasm of the CUDA toolkit, follows the control flow
from each product to its waits, and prints each instruction on the way that writes such a register.
The exit code is 1 if there is one, or if the machine code has no such product.
"""
import re
import sys

# Instructions whose first operand is not a destination register.
NO_DESTINATION = {
    "BAR", "BRA", "BRX", "BSSY", "BSYNC", "EXIT", "HGMMA", "MEMBAR", "NANOSLEEP", "NOP", "RED", "REDG", "RET", "ST",
    "STG", "STL", "STS", "UBLKCP", "UTMALDG", "WARPGROUP", "WARPSYNC", "YIELD",
}
PRODUCT = re.compile(r"HGMMA\S* R\d+, R(\d+), gdesc")
LABEL = re.compile(r"\s*(\.L\w+):")
INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
TARGET = re.compile(r"`\((\.L\w+)\)")
PREDICATE = re.compile(r"^@!?U?P\w+\s+")


def read(lines):
    """Returns the instructions as (address, text), and the number of the instruction after each label. A
    function ends with (None, "")."""
    instructions, labels = [], {}
    for line in lines:
        label, instruction = LABEL.match(line), INSTRUCTION.match(line)
        if label:
            labels[label.group(1)] = len(instructions)
        elif instruction:
            instructions.append(instruction.groups())
        elif line.lstrip().startswith((".text", ".section")):
            instructions.append((None, ""))
    return instructions, labels


def width(name):
    """The number of registers of a destination."""
    if ".128" in name or name.startswith(("HMMA", "IMMA", "LDSM")):
        return 4
    return 2 if ".64" in name or ".WIDE" in name or name == "CS2R" else 1


def written(text):
    """The numbers of the registers that an instruction writes."""
    name, _, operands = PREDICATE.sub("", text).partition(" ")
    if name.split(".")[0] in NO_DESTINATION:
        return set()
    for operand in operands.split(",")[:2]:  # a predicate may come first
        register = re.fullmatch(r"\s*R(\d+)(\.64)?\s*", operand)
        if register:
            first = int(register.group(1))
            return set(range(first, first + width(name)))
        if not re.fullmatch(r"\s*!?U?P[\dT]\s*", operand):
            break
    return set()


def overwriting(instructions, labels, product):
    """The instructions after a product that write its registers before a wait."""
    first = int(PRODUCT.match(instructions[product][1]).group(1))
    registers = set(range(first, first + 4))
    found, seen, starts = set(), set(), [product + 1]
    while starts:
        at = starts.pop()
        while at < len(instructions) and at not in seen:
            seen.add(at)
            address, text = instructions[at]
            if address is None or "WARPGROUP.DEPBAR" in text:
                break
            if written(text) & registers:
                found.add((address, text))
            target = TARGET.search(text)
            if target and target.group(1) in labels:
                starts.append(labels[target.group(1)])
            if re.match(r"(BRA|EXIT|RET)\b", text) and not re.match(r"BRA(\.\w+)* !?U?P", text) and ".DIV" not in text:
                break
            at += 1
    return sorted(found)


def main():
    instructions, labels = read(sys.stdin)
    products = [i for i, (_, text) in enumerate(instructions) if PRODUCT.match(text)]
    wrong = 0
    for product in products:
        found = overwriting(instructions, labels, product)
        wrong += bool(found)
        for address, text in found:
            print(f"{instructions[product][0]} {instructions[product][1]}: overwritten at {address} by {text}")
    print(f"{len(products)} products with weights in registers, {wrong} of them overwritten early")
    return 1 if wrong or not products else 0


if __name__ == "__main__":
    sys.exit(main())
