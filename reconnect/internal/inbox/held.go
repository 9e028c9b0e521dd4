package inbox

import "slices"

// Held are messages of the next session, for which the reader has to wait until it has all of the
// old one.
type Held struct {
	list  []Item
	bytes int // of their data
}

// Add holds one message more, and reports whether that is as much as there is room for by the
// options of the inbox. A message without data counts as one of 64 bytes.
func (h *Held) Add(m Item, o Options) (full bool) {
	h.list = append(h.list, m)
	h.bytes += len(m.Data)
	return h.bytes >= o.Bytes || len(h.list) >= o.held()
}

// held returns how many messages may be held.
func (o *Options) held() int { return max(o.Messages, o.Bytes/64) }

// Forget drops the messages of one session, and reports whether there were any.
func (h *Held) Forget(session uint64) bool {
	before := len(h.list)
	h.list = slices.DeleteFunc(h.list, func(m Item) bool { return m.Session == session })
	h.bytes = 0
	for _, m := range h.list {
		h.bytes += len(m.Data)
	}
	return len(h.list) < before
}

// Take returns the messages, and holds none any more.
func (h *Held) Take() []Item {
	list := h.list
	*h = Held{}
	return list
}
