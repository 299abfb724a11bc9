# The tests of the CUDA machine. Those with the label gpu need a device, and skip where there is none.
function(mgl_cuda_test name)
  mgl_test(${name} ${name}.c cuda_support.c golden.c fixture.c ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
mgl_test(test_cuda_cache test_cuda_cache.c)
mgl_cuda_test(test_cuda_driver)
mgl_vm_test(test_cuda_encode)
# A label of its own: NVRTC takes minutes for it, and under sanitizers it would tell nothing more.
mgl_cuda_test(test_cuda_compile LABELS nvrtc TIMEOUT 900)
mgl_cuda_test(test_cuda_small LABELS gpu TIMEOUT 300)
mgl_cuda_test(test_cuda_trace LABELS gpu TIMEOUT 300)
mgl_cuda_test(test_cuda_golden LABELS gpu TIMEOUT 600)
mgl_cuda_test(test_cuda_run LABELS gpu TIMEOUT 600)
