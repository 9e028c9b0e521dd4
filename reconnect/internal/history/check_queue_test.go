package history

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/internal/outbox"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// queues are the send queues of a history, as they are whenever the lock around one is released. The tests of
// package queue compare it with a plain list; here the outbox uses it.
type queues struct {
	mu    sync.Mutex // guards what follows; nothing else is locked under it
	last  map[any]*items
	wrong []string
}

// items are the items of a queue.
type items struct {
	now  []itemID        // in order
	seen map[itemID]bool // what has ever been in it
	back map[itemID]bool // those of now that were put back into it, for which there may be no room
}

// itemID is the address of an item, which may be used again, and when its message was queued.
type itemID struct {
	item   any
	queued int64
}

var tappedQueues queues

func init() { outbox.Tap = lookAtQueue }

// lookAtQueue is called when a queue may have changed.
func lookAtQueue[T any](q *queue.Queue[T]) {
	h := &tappedQueues
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.last[q]
	if was == nil {
		if h.last == nil {
			h.last = make(map[any]*items)
		}
		was = &items{seen: make(map[itemID]bool), back: make(map[itemID]bool)}
		h.last[q] = was
	}
	if wrong := was.become(itemsOf(q)); wrong != "" && len(h.wrong) < 3 {
		h.wrong = append(h.wrong, wrong)
	}
	if wrong := counted(q, len(was.back)); wrong != "" && len(h.wrong) < 3 {
		h.wrong = append(h.wrong, wrong)
	}
}

func itemsOf[T any](q *queue.Queue[T]) (all []itemID) {
	for i := range q.All() {
		queued := reflect.ValueOf(&i.Value).Elem().FieldByName("queued") // T is outbox's sending
		all = append(all, itemID{i, queued.Int()})
	}
	return all
}

// become notes the items that a queue has now, and returns what is wrong with their order: those that stay keep
// theirs, behind those that were put back, and before those that are new.
func (was *items) become(now []itemID) (wrong string) {
	lacking := func(in []itemID) func(itemID) bool {
		return func(i itemID) bool { return !slices.Contains(in, i) }
	}
	before := slices.DeleteFunc(slices.Clone(was.now), lacking(now))
	stay := slices.DeleteFunc(slices.Clone(now), lacking(was.now))
	head := now // where those are that were put back
	if len(stay) > 0 {
		n := slices.Index(now, stay[0])
		if head = now[:n]; !slices.Equal(now[n:n+len(stay)], before) {
			wrong = "what stays has another order, or something between it"
		}
	}
	back := make(map[itemID]bool)
	for _, i := range now {
		switch {
		case slices.Contains(head, i) && was.seen[i], slices.Contains(stay, i) && was.back[i]:
			back[i] = true
		case slices.Contains(head, i) && len(stay) > 0:
			wrong = "something is put back that was not there"
		}
		was.seen[i] = true
	}
	was.now, was.back = now, back
	return wrong
}

// counted returns what differs between the counts of a queue and its items. There may be as many more than
// there is room for as were put back.
func counted[T any](q *queue.Queue[T], back int) string {
	count, bytes := 0, 0
	var earliest time.Time
	keys := make(map[string]bool)
	for i := range q.All() {
		if !i.Free {
			count, bytes = count+1, bytes+i.Size
		}
		if !i.Expires.IsZero() && (earliest.IsZero() || i.Expires.Before(earliest)) {
			earliest = i.Expires
		}
		if q.Full == queue.ReplaceKey && i.Key != "" && keys[i.Key] {
			return "two items have the key " + i.Key
		}
		keys[i.Key] = true
	}
	messages, size := q.Size()
	if count != messages || bytes != size || !earliest.Equal(q.Earliest()) {
		return fmt.Sprintf("%d items of %d bytes, the first until %v; and it has %d of %d, %v",
			count, bytes, earliest, messages, size, q.Earliest())
	}
	if count > q.Messages+back || back == 0 && bytes > q.Bytes {
		return fmt.Sprintf("%d items of %d bytes, and room for %d of %d", count, bytes, q.Messages, q.Bytes)
	}
	return ""
}

// take returns what has happened since the last call, and forgets the queues.
func (h *queues) take() (looked bool, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	looked, wrong = len(h.last) > 0, h.wrong
	h.last, h.wrong = nil, nil
	return looked, wrong
}

// finishQueues checks what was seen of all send queues. The caller holds w.mu.
func (w *world) finishQueues() {
	if looked, wrong := tappedQueues.take(); looked {
		w.check(QueueAccepts, len(wrong) == 0, "%q", wrong)
	}
}
