package inbox

import (
	"fmt"

	"github.com/redial-go/redial/reconnect/internal/chunk"
)

// Wrong says which rule of its memory an inbox breaks, or "". The producer is between two messages, and the reader between two calls.
func (in *Inbox) Wrong() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	read, _ := in.unsettled()
	count, chunks := 0, map[*chunk.Chunk]int{}
	wrong := ""
	rule := func(ok bool, format string, args ...any) {
		if !ok && wrong == "" {
			wrong = fmt.Sprintf(format, args...)
		}
	}
	walk := func(s *slots, from int) {
		rule(cap(s.list) == fewSlots || cap(s.list) == manySlots, "slots for %d messages", cap(s.list))
		for i, u := range s.list {
			rule(i >= from+read || s != in.taken || u.Data == nil, "the data of a message that was read is kept")
			if i < from {
				continue
			}
			count++
			if u.chunk != nil {
				chunks[u.chunk]++
			}
		}
	}
	if in.taken != nil {
		walk(in.taken, int(in.next)-read)
	}
	for s := in.queue; s != nil; s = s.next {
		walk(s, 0)
		rule(s.next != nil || s == in.tail, "the tail is not the end of the queue")
	}
	rule(count == in.count, "%d messages, and %d are counted", count, in.count)
	for c, n := range chunks {
		rule(c.Unread == n, "%d messages are in a chunk, and %d are counted", n, c.Unread)
	}
	rule(in.filling == nil || in.filling.Unread == chunks[in.filling], "the chunk for the next message counts messages that were read")
	rule(in.full.Load() == in.left().full(), "full is %t", in.full.Load())
	rule(!in.idle.Load() || in.count == 0, "the reader waits although there are messages")
	rule(!in.begun, "a message is begun between two messages")
	rule(in.collecting || in.pending != nil || !in.writing, "between two messages the producer keeps a chunk")
	rule(in.count > 0 || in.taken == nil && in.queue == nil && in.tail == nil, "an empty inbox keeps slots")
	rule(in.writing || in.filling == nil || in.filling.Unread > 0, "an empty inbox keeps a chunk")
	return wrong
}
