/* The threads of PyTorch's OpenMP library.
 *
 * GCC turns a parallel loop into calls of three functions of libgomp. Linked with libgomp, the kernels could get a second pool of
 * threads, which competes with PyTorch's; and PyTorch's own file has another path on each machine. So the three are defined here: they
 * call what `share_threads` was told, the functions in the file that PyTorch has loaded. Before that, loops run in one thread.
 */

typedef void Body(void *);
typedef void Parallel(Body *, void *, unsigned, unsigned);
typedef int Number(void);

static Parallel *parallel;
static Number *thread_number, *thread_count;

void share_threads(Parallel *their_parallel, Number *their_thread_number, Number *their_thread_count) {
    parallel = their_parallel, thread_number = their_thread_number, thread_count = their_thread_count;
}

#pragma GCC visibility push(hidden) /* no other library may take these for libgomp's */

void GOMP_parallel(Body *body, void *shared, unsigned threads, unsigned flags) {
    if (parallel)
        parallel(body, shared, threads, flags);
    else
        body(shared);
}

int omp_get_thread_num(void) { return parallel ? thread_number() : 0; }

int omp_get_num_threads(void) { return parallel ? thread_count() : 1; }

#pragma GCC visibility pop
