/*
 * Run-time binding of the CUDA driver, NVRTC and nvJitLink. Each library is a table of the
 * functions that this folder calls. The same binary therefore runs without the libraries, and tests
 * can substitute a table. The declarations are our own, so the toolkit is not needed to build.
 * Names and semantics follow the CUDA Driver API and the NVRTC and nvJitLink references.
 */
#ifndef MGL_VM_CUDA_DRIVER_H
#define MGL_VM_CUDA_DRIVER_H

#include "base/error.h"

typedef uint64_t mgl_cu_address; /* CUdeviceptr */

/*  member, symbol, arguments; all return CUresult */
#define MGL_CU_FUNCTIONS(X)                                                                        \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(driver_version, "cuDriverGetVersion", (int *version))                                        \
    X(error_name, "cuGetErrorName", (int result, const char **name))                               \
    X(error_string, "cuGetErrorString", (int result, const char **text))                           \
    X(device_count, "cuDeviceGetCount", (int *count))                                              \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                       \
    X(device_name, "cuDeviceGetName", (char *name, int length, int device))                        \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))           \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                          \
    X(device_uuid, "cuDeviceGetUuid", (unsigned char *uuid, int device))                           \
    X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                    \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_push, "cuCtxPushCurrent_v2", (void *context))                                        \
    X(context_pop, "cuCtxPopCurrent_v2", (void **context))                                         \
    X(module_load, "cuModuleLoadDataEx",                                                           \
      (void **module, const void *image, unsigned count, int *options, void **values))             \
    X(module_unload, "cuModuleUnload", (void *module))                                             \
    X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))   \
    X(function_get, "cuFuncGetAttribute", (int *value, int attribute, void *function))             \
    X(function_set, "cuFuncSetAttribute", (void *function, int attribute, int value))              \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                                    \
      (int *blocks, void *function, int threads, size_t shared_bytes))                             \
    X(launch_cooperative, "cuLaunchCooperativeKernel",                                             \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments)) \
    X(launch, "cuLaunchKernel",                                                                    \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,  \
       void **extra))                                                                              \
    X(memory_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * total))                       \
    X(memory_alloc, "cuMemAlloc_v2", (mgl_cu_address * address, size_t bytes))                     \
    X(memory_free, "cuMemFree_v2", (mgl_cu_address address))                                       \
    X(memory_set, "cuMemsetD8_v2", (mgl_cu_address to, unsigned char value, size_t bytes))         \
    X(memory_set_2d, "cuMemsetD2D32_v2",                                                           \
      (mgl_cu_address to, size_t pitch, unsigned word, size_t words, size_t rows))                 \
    X(copy_in, "cuMemcpyHtoD_v2", (mgl_cu_address to, const void *from, size_t bytes))             \
    X(copy_in_async, "cuMemcpyHtoDAsync_v2",                                                       \
      (mgl_cu_address to, const void *from, size_t bytes, void *stream))                           \
    X(copy_out, "cuMemcpyDtoH_v2", (void *to, mgl_cu_address from, size_t bytes))                  \
    X(copy_within_async, "cuMemcpyDtoDAsync_v2",                                                   \
      (mgl_cu_address to, mgl_cu_address from, size_t bytes, void *stream))                        \
    X(pinned_alloc, "cuMemHostAlloc", (void **memory, size_t bytes, unsigned flags))               \
    X(pinned_free, "cuMemFreeHost", (void *memory))                                                \
    X(pinned_address, "cuMemHostGetDevicePointer_v2",                                              \
      (mgl_cu_address * address, void *memory, unsigned flags))                                    \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                            \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                        \
    X(stream_query, "cuStreamQuery", (void *stream))                                               \
    X(stream_synchronize, "cuStreamSynchronize", (void *stream))                                   \
    X(device_bus_id, "cuDeviceGetPCIBusId", (char *id, int length, int device))                    \
    X(event_create, "cuEventCreate", (void **event, unsigned flags))                               \
    X(event_destroy, "cuEventDestroy_v2", (void *event))                                           \
    X(event_record, "cuEventRecord", (void *event, void *stream))                                  \
    X(event_synchronize, "cuEventSynchronize", (void *event))                                      \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, void *start, void *end))          \
    X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                          \
    X(capture_end, "cuStreamEndCapture", (void *stream, void **graph))                             \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                            \
      (void **executable, void *graph, unsigned long long flags))                                  \
    X(graph_launch, "cuGraphLaunch", (void *executable, void *stream))                             \
    X(graph_destroy, "cuGraphDestroy", (void *graph))                                              \
    X(graph_release, "cuGraphExecDestroy", (void *executable))

typedef struct mgl_cu {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    MGL_CU_FUNCTIONS(MGL_X)
#undef MGL_X
    char path[256]; /* path of the library */
} mgl_cu;

/* CUresult codes, attributes and flags in use. */
enum {
    MGL_CU_OUT_OF_MEMORY = 2,
    MGL_CU_NOT_READY = 600,
    MGL_CU_DEVICE_SM_COUNT = 16,
    MGL_CU_DEVICE_L2_BYTES = 38,
    MGL_CU_DEVICE_MAJOR = 75,
    MGL_CU_DEVICE_MINOR = 76,
    MGL_CU_DEVICE_COOPERATIVE = 95,
    MGL_CU_DEVICE_SHARED_OPTIN = 97,
    MGL_CU_FUNCTION_LOCAL_BYTES = 3,
    MGL_CU_FUNCTION_REGISTERS = 4,
    MGL_CU_FUNCTION_DYNAMIC_SHARED = 8,
    MGL_CU_PINNED_PORTABLE_MAPPED = 1 | 2,
    MGL_CU_STREAM_NON_BLOCKING = 1,
    MGL_CU_EVENT_DEFAULT = 0,
    MGL_CU_CAPTURE_RELAXED = 2,
    MGL_CU_JIT_ERROR_LOG = 5,
    MGL_CU_JIT_ERROR_LOG_BYTES = 6
};

/*  member, symbol, arguments; all return nvrtcResult */
#define MGL_NVRTC_FUNCTIONS(X)                                                                     \
    X(version, "nvrtcVersion", (int *major, int *minor))                                           \
    X(create, "nvrtcCreateProgram",                                                                \
      (void **program, const char *source, const char *name, int count,                            \
       const char *const *headers, const char *const *names))                                      \
    X(compile, "nvrtcCompileProgram", (void *program, int count, const char *const *options))      \
    X(log_size, "nvrtcGetProgramLogSize", (void *program, size_t *bytes))                          \
    X(log, "nvrtcGetProgramLog", (void *program, char *log))                                       \
    X(cubin_size, "nvrtcGetCUBINSize", (void *program, size_t *bytes))                             \
    X(cubin, "nvrtcGetCUBIN", (void *program, char *cubin))                                        \
    X(ptx_size, "nvrtcGetPTXSize", (void *program, size_t *bytes))                                 \
    X(ptx, "nvrtcGetPTX", (void *program, char *ptx))                                              \
    X(destroy, "nvrtcDestroyProgram", (void **program))

typedef struct mgl_nvrtc {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    MGL_NVRTC_FUNCTIONS(MGL_X)
#undef MGL_X
    char path[256];
} mgl_nvrtc;

/*  member, symbol, arguments; all return nvJitLinkResult */
#define MGL_JITLINK_FUNCTIONS(X)                                                                   \
    X(version, "nvJitLinkVersion", (unsigned *major, unsigned *minor))                             \
    X(create, "nvJitLinkCreate", (void **link, uint32_t count, const char **options))              \
    X(destroy, "nvJitLinkDestroy", (void **link))                                                  \
    X(add, "nvJitLinkAddData",                                                                     \
      (void *link, int kind, const void *data, size_t bytes, const char *name))                    \
    X(complete, "nvJitLinkComplete", (void *link))                                                 \
    X(cubin_size, "nvJitLinkGetLinkedCubinSize", (void *link, size_t *bytes))                      \
    X(cubin, "nvJitLinkGetLinkedCubin", (void *link, void *cubin))                                 \
    X(error_size, "nvJitLinkGetErrorLogSize", (void *link, size_t *bytes))                         \
    X(error_log, "nvJitLinkGetErrorLog", (void *link, char *log))

typedef struct mgl_jitlink {
#define MGL_X(member, symbol, arguments) int(*member) arguments;
    MGL_JITLINK_FUNCTIONS(MGL_X)
#undef MGL_X
    char path[256];
} mgl_jitlink;

/* nvJitLinkInputType */
enum { MGL_JITLINK_CUBIN = 1, MGL_JITLINK_PTX = 2 };

/* Open the tables on first use and keep them for the life of the process. Thread-safe. MGL_DEVICE:
 * a library was not found; *err names the places searched. mgl_cu_open also initializes the driver.
 * NVRTC and nvJitLink come from $CUDA_HOME/lib64 or $CUDA_HOME/lib, else the newest in the loader's
 * path and /usr/local/cuda/lib64. */
mgl_status mgl_cu_open(const mgl_cu **out, mgl_error *err);
mgl_status mgl_nvrtc_open(const mgl_nvrtc **out, mgl_error *err);
mgl_status mgl_jitlink_open(const mgl_jitlink **out, mgl_error *err);

/* Returns the linker if it can link the compiler's output. NULL, with a reason: kernels are
 * compiled as one translation unit. */
const mgl_jitlink *mgl_jitlink_for(const mgl_nvrtc *nvrtc, mgl_error *err);

/* For tests: substitutes a table; NULL restores the library. Not thread-safe. A substituted
 * compiler has no linker, unless a linker is substituted too. */
void mgl_cu_override(const mgl_cu *table);
void mgl_nvrtc_override(const mgl_nvrtc *table);
void mgl_jitlink_override(const mgl_jitlink *table);

/* Brackets around driver calls, from any thread; they nest. The process must not be killed inside,
 * because a kernel may be running or the driver may be within a call. */
void mgl_cu_begin(void);
void mgl_cu_end(void);
/* Whether any thread is inside such brackets. */
bool mgl_cu_is_busy(void);

/* Returns MGL_OK for result 0. Otherwise MGL_DEVICE with `what`, the driver's error name, and its
 * description. */
mgl_status mgl_cu_check(const mgl_cu *cu, int result, const char *what, mgl_error *err);

#endif
