# The tests of the CUDA machine. Those with the label gpu need a device, and skip where there is none.
function(mgl_cuda_test name)
  mgl_test(${name} ${name}.c cuda_support.c fixture.c ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()
mgl_cuda_test(test_cuda_golden LABELS gpu)
mgl_cuda_test(test_cuda_run LABELS gpu)
