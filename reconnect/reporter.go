package reconnect

import (
	"context"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// reporter calls Outbox.OnReceipt with each receipt, in a goroutine that exists only while
// receipts wait.
type reporter struct {
	life *lifetime

	mu      sync.Mutex // guards what follows
	waiting []Receipt
	bytes   int    // of the data of those that wait
	made    uint64 // how many receipts there have been
	done    uint64 // for how many of them OnReceipt has returned
	running bool   // there is a goroutine

	runs     sync.WaitGroup
	progress xsync.Signal // sent when OnReceipt is called, and when it has returned
}

// full returns how many receipts wait, and whether that is too many.
func (r *reporter) full() (waiting int, full bool) {
	o := &r.life.o.Outbox
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting), len(r.waiting) >= o.Messages || r.bytes >= o.Bytes
}

// add lets OnReceipt be called with a receipt, after those before it.
func (r *reporter) add(receipt Receipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, receipt)
	r.bytes += len(receipt.Out.Data)
	r.made++
	if !r.running {
		r.running = true
		r.runs.Add(1)
		go r.run() // joined by end
	}
}

// run calls OnReceipt until nothing waits.
func (r *reporter) run() {
	defer r.runs.Done()
	for {
		receipt, ok := r.next()
		if !ok {
			return
		}
		xsync.Guard(func() { r.life.o.Outbox.OnReceipt(&r.life.Context, receipt) }, func() {
			r.returned()
			r.runs.Add(1)
			go r.run() // for the receipts that remain; joined by end
		})
		r.returned()
	}
}

// next takes the oldest receipt. It reports false if there is none, and then the goroutine
// must end.
func (r *reporter) next() (Receipt, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.waiting, r.running = nil, false
		return Receipt{}, false
	}
	defer r.progress.Broadcast()
	receipt := r.waiting[0]
	r.waiting[0] = Receipt{}
	r.waiting = r.waiting[1:]
	r.bytes -= len(receipt.Out.Data)
	return receipt, true
}

// returned notes that OnReceipt has returned.
func (r *reporter) returned() {
	r.mu.Lock()
	r.done++
	r.mu.Unlock()
	r.progress.Broadcast()
}

// await waits until OnReceipt has returned for all receipts that there are now.
func (r *reporter) await(ctx context.Context) error {
	r.mu.Lock()
	made := r.made
	r.mu.Unlock()
	for {
		progress := r.progress.Wait()
		r.mu.Lock()
		done := r.done
		r.mu.Unlock()
		if done >= made {
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
	if running {
		r.life.waitFor(xsync.Go(r.runs.Wait).Done(), "OnReceipt")
	}
	r.runs.Wait()
}
