package history

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// queues are the send queues of a history, each compared with a plain list that does the same without any index: after each call
// both hold the same, and have dropped the same for the same reasons.
type queues struct {
	mu    sync.Mutex // guards what follows; nothing else is locked under it
	lists map[any]*plainQueue
	steps int
	wrong []string
}

// plainQueue is the simplest queue.
type plainQueue struct {
	queue.Limits
	items   []queue.Entry
	dropped map[any]queue.Reason // in this step
}

var tappedQueues queues

func init() { queue.Tap = tappedQueues.step }

// step is called after each call.
func (h *queues) step(s queue.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps++
	p := h.lists[s.Queue]
	if p == nil {
		if h.lists == nil {
			h.lists = make(map[any]*plainQueue)
		}
		p = &plainQueue{Limits: s.Limits}
		h.lists[s.Queue] = p
	}
	if wrong := p.accepts(s); wrong != "" && len(h.wrong) < 3 {
		h.wrong = append(h.wrong, s.Call+": "+wrong)
	}
}

// take returns what has happened since the last call, and forgets the queues.
func (h *queues) take() (steps int, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, wrong = h.steps, h.wrong
	h.lists, h.steps, h.wrong = nil, 0, nil
	return steps, wrong
}

// finishQueues checks the steps of all send queues. The caller holds w.mu.
func (w *world) finishQueues() {
	if steps, wrong := tappedQueues.take(); steps > 0 {
		w.check(QueueAccepts, len(wrong) == 0, "%q", wrong)
	}
}

// accepts does the same as a queue has done, and returns what differs.
func (p *plainQueue) accepts(s queue.Step) string {
	p.dropped = nil
	switch s.Call {
	case "Add":
		if ok := p.add(s.Item, s.Now); ok != (s.Err == nil) {
			return fmt.Sprintf("accepted %t, and the error is %v", ok, s.Err)
		}
	case "Next":
		if next := p.next(s); next != s.Item.ID {
			return "it returns another item"
		}
	case "PutBack":
		if s.Item.Key != "" && p.keyed(s.Item.Key) >= 0 {
			p.note(s.Item, queue.Replaced)
		} else {
			p.items = slices.Insert(p.items, 0, s.Item)
		}
	case "Remove":
		p.items = slices.DeleteFunc(p.items, func(e queue.Entry) bool { return e.ID == s.Item.ID })
	case "Expire":
		p.expire(s.Now)
	}
	return p.differs(s)
}

// differs returns what differs after a call.
func (p *plainQueue) differs(s queue.Step) string {
	count, bytes := p.size()
	var earliest time.Time
	same := len(p.items) == len(s.Items) && len(p.dropped) == len(s.Dropped)
	for i, e := range p.items {
		same = same && e.ID == s.Items[i]
		if !e.Expires.IsZero() && (earliest.IsZero() || e.Expires.Before(earliest)) {
			earliest = e.Expires
		}
	}
	for id, why := range p.dropped {
		got, ok := s.Dropped[id]
		same = same && ok && got == why
	}
	if !same || count != s.Messages || bytes != s.Bytes || !earliest.Equal(s.Earliest) {
		return fmt.Sprintf("%d items of %d bytes, %d in all, %d dropped, the first until %v; and it has %d of %d, %d, %d, %v",
			count, bytes, len(p.items), len(p.dropped), earliest, s.Messages, s.Bytes, len(s.Items), len(s.Dropped), s.Earliest)
	}
	return ""
}

func (p *plainQueue) size() (count, bytes int) {
	for _, e := range p.items {
		if !e.Free {
			count, bytes = count+1, bytes+e.Size
		}
	}
	return count, bytes
}

func (p *plainQueue) note(e queue.Entry, why queue.Reason) {
	if p.dropped == nil {
		p.dropped = make(map[any]queue.Reason)
	}
	p.dropped[e.ID] = why
}

func (p *plainQueue) drop(i int, why queue.Reason) {
	p.note(p.items[i], why)
	p.items = slices.Delete(p.items, i, i+1)
}

func late(e queue.Entry, now time.Time) bool { return !e.Expires.IsZero() && !now.Before(e.Expires) }

func (p *plainQueue) expire(now time.Time) {
	for i := 0; i < len(p.items); {
		if late(p.items[i], now) {
			p.drop(i, queue.Expired)
		} else {
			i++
		}
	}
}

// keyed returns where the item with a key is, or -1.
func (p *plainQueue) keyed(key string) int {
	return slices.IndexFunc(p.items, func(e queue.Entry) bool { return key != "" && p.Full == queue.ReplaceKey && e.Key == key })
}

// fits reports whether there is room for e if the item at old were gone.
func (p *plainQueue) fits(e queue.Entry, old int) bool {
	count, bytes := p.size()
	if old >= 0 {
		count, bytes = count-1, bytes-p.items[old].Size
	}
	return count < p.Messages && bytes+e.Size <= p.Bytes
}

func (p *plainQueue) add(e queue.Entry, now time.Time) bool {
	if !e.Free {
		if e.Size > p.Bytes {
			return false
		}
		if !p.fits(e, p.keyed(e.Key)) {
			p.expire(now)
		}
		for p.Full == queue.DropOldest && !p.fits(e, -1) {
			p.drop(slices.IndexFunc(p.items, func(o queue.Entry) bool { return !o.Free }), queue.Displaced)
		}
		old := p.keyed(e.Key)
		if !p.fits(e, old) {
			return false
		}
		if old >= 0 {
			p.drop(old, queue.Replaced)
		}
	}
	p.items = append(p.items, e)
	return true
}

// next returns the first item that may go.
func (p *plainQueue) next(s queue.Step) any {
	for i := 0; i < len(p.items); {
		switch e := p.items[i]; {
		case slices.Contains(s.Skipped, e.ID):
			i++
		case late(e, s.Now):
			p.drop(i, queue.Expired)
		case slices.Contains(s.Passed, e.ID):
			i++
		default:
			return e.ID
		}
	}
	return nil
}
