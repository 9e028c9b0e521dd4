// Package parallel runs the parts of a computation side by side.
package parallel

import (
	"context"
	"sync"
)

// Do calls f for 0 to n-1, on so many goroutines. It waits for all of them. After an error, or when
// ctx ends, it begins no more; it returns the first error, or the cause of ctx.
func Do(ctx context.Context, n, workers int, f func(i int) error) error {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex // guards next and failed
		next   int
		failed error
	)
	take := func(err error) (i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = err
		}
		if failed != nil || next == n || ctx.Err() != nil {
			return 0, false
		}
		next++
		return next - 1, true
	}
	for range min(workers, n) {
		group.Go(func() {
			for i, ok := take(nil); ok; i, ok = take(f(i)) {
			}
		})
	}
	group.Wait()
	if failed == nil && next < n {
		return context.Cause(ctx)
	}
	return failed
}
