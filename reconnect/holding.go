package reconnect

import "slices"

// holding is the messages of the next session, for which the reader has to wait until it has
// all of the old one.
type holding struct {
	list  []Message
	bytes int // of their data
}

// add holds one message more, and reports whether that is as much as there is room for in an
// inbox. A message without data counts as one of 64 bytes.
func (h *holding) add(m Message, limit *Inbox) (full bool) {
	h.list = append(h.list, m)
	h.bytes += len(m.Data)
	return h.bytes >= limit.Bytes || len(h.list) >= limit.held()
}

// held returns how many messages may be held.
func (i *Inbox) held() int { return max(i.Messages, i.Bytes/64) }

// forget drops the messages of one session, and reports whether there were any.
func (h *holding) forget(session uint64) bool {
	before := len(h.list)
	h.list = slices.DeleteFunc(h.list, func(m Message) bool { return m.Session == session })
	h.bytes = 0
	for _, m := range h.list {
		h.bytes += len(m.Data)
	}
	return len(h.list) < before
}

// take returns the messages, and holds none any more.
func (h *holding) take() []Message {
	list := h.list
	*h = holding{}
	return list
}
