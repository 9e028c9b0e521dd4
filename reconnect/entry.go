package reconnect

import "time"

// entry is one message in the [outbox].
type entry struct {
	Out
	expires time.Time     // zero: never
	written chan struct{} // closed with the fate of a Write; nil for a Send
	hasty   bool          // a Write that does not wait for another session
	doubt   bool          // the fate of an earlier try is unknown
	receipt Receipt       // in the making

	listed     bool // in the list
	prev, next *entry
}

// late reports whether e may not be sent any more.
func (e *entry) late(now time.Time) bool { return !e.expires.IsZero() && !now.Before(e.expires) }

// list holds entries in order. Those of Write need no room, and do not count.
type list struct {
	first, last  *entry
	count, bytes int
}

func (l *list) push(e *entry) {
	e.prev = l.last
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.added(e)
}

func (l *list) unshift(e *entry) {
	e.next = l.first
	if l.first == nil {
		l.last = e
	} else {
		l.first.prev = e
	}
	l.first = e
	l.added(e)
}

func (l *list) added(e *entry) {
	e.listed = true
	if e.written == nil {
		l.count++
		l.bytes += len(e.Data)
	}
}

func (l *list) remove(e *entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next, e.listed = nil, nil, false
	if e.written == nil {
		l.count--
		l.bytes -= len(e.Data)
	}
}

// oldest returns the oldest that counts.
func (l *list) oldest() *entry {
	e := l.first
	for e != nil && e.written != nil {
		e = e.next
	}
	return e
}
