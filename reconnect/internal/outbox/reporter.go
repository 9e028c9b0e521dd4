package outbox

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// reporter calls Outbox.OnReceipt with each receipt, in a goroutine that exists only while
// receipts wait.
type reporter struct {
	o *Options

	count, bytes atomic.Int64  // of the receipts that wait, and of their data
	made, done   atomic.Uint64 // how many receipts were made, and for how many of them OnReceipt has returned
	held         atomic.Int64  // messages that have their fate, and whose receipts are made when keeps has returned

	mu      sync.Mutex // guards what follows
	waiting chain      // messages whose receipts wait
	running bool       // there is a goroutine

	taken *entry // the first of those that the goroutine has taken; belongs to it
	used  spare  // those that it has reported; likewise
	runs  sync.WaitGroup

	progress xsync.Signal // sent when OnReceipt is called, and when it has returned
}

// full returns how many receipts wait, and whether that is too many.
func (r *reporter) full() (waiting int64, full bool) {
	waiting = r.count.Load()
	return waiting, waiting >= int64(r.o.Messages) || r.bytes.Load() >= int64(r.o.Bytes)
}

// add lets OnReceipt be called with the receipts of messages, after those before them. It reports whether the
// caller has to run the reporter, because it does not run.
func (r *reporter) add(c chain) (start bool) {
	if c.first == nil {
		return false
	}
	count, bytes := 0, 0
	for e := c.first; e != nil; e = e.Value.next {
		count, bytes = count+1, bytes+len(e.Value.Out.Data)
	}
	r.count.Add(int64(count))
	r.bytes.Add(int64(bytes))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting.add(c)
	if r.running {
		return false
	}
	r.running = true
	r.runs.Add(1) // for the caller
	return true
}

// skip counts the receipts of messages as given, because there is no OnReceipt. Their entries are spare then.
func (r *reporter) skip(c chain, s *spare) {
	for e := c.first; e != nil; {
		next := e.Value.next
		s.add(e)
		r.returned()
		e = next
	}
}

// run calls OnReceipt until nothing waits.
func (r *reporter) run() {
	defer r.runs.Done()
	xsync.Guard(r.report, func() {
		r.returned()
		r.runs.Add(1)
		go r.run() // for the receipts that remain; joined by end
	})
}

// report is run, unless a call does not return.
func (r *reporter) report() {
	for e := r.next(); e != nil; e = r.next() {
		r.o.Receipt(&e.Value.Receipt)
		r.used.add(e)
		r.returned()
	}
}

// next takes the oldest message. It returns nil if there is none, and then the goroutine must end.
func (r *reporter) next() *entry {
	if r.taken == nil {
		r.used.free()
		r.mu.Lock()
		first := r.waiting.first
		r.taken, r.waiting = first, chain{}
		r.running = first != nil
		r.mu.Unlock()
		if first == nil { // from here on r.taken may belong to another goroutine
			return nil
		}
	}
	e := r.taken
	r.taken = e.Value.next
	r.count.Add(-1)
	r.bytes.Add(-int64(len(e.Value.Out.Data)))
	r.progress.Broadcast()
	return e
}

// returned notes that OnReceipt has returned, or that there is none.
func (r *reporter) returned() {
	r.done.Add(1)
	r.progress.Broadcast()
}

// await waits until OnReceipt has returned for all messages that have their fate now. Their receipts may come
// after those of later messages, if some are held.
func (r *reporter) await(ctx context.Context) error {
	for made, counted := uint64(0), false; ; {
		progress := r.progress.Wait()
		if !counted && r.held.Load() == 0 {
			made, counted = r.made.Load(), true
		}
		if counted && r.done.Load() >= made {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// end waits until OnReceipt has returned for all receipts. No more may be added.
func (r *reporter) end() {
	r.mu.Lock()
	running := r.running
	r.mu.Unlock()
	if running { // in a goroutine of its own, which a hook that Await calls may end
		<-xsync.Go(func() { r.o.Await(xsync.Go(r.runs.Wait).Done, "OnReceipt") }).Done
	}
	r.runs.Wait()
}
