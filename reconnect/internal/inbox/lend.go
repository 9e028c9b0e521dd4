package inbox

import (
	"github.com/redial-go/redial/reconnect/internal/lead"
	"github.com/redial-go/redial/reconnect/internal/link"
)

// This file lets the reader read the link itself while the inbox is empty. Package lead decides when.

// Lend lets the reader and the producer read l in turns until Recall, if the connection of l allows that. Only the
// producer may call Lend.
func (in *Inbox) Lend(l *link.Link) { in.lead.Store(lead.New(l, in.offer, in.o.Overflow == Block)) }

// offer wakes a reader that waits, because the turn is free.
func (in *Inbox) offer() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wakeReader()
}

// Yield lets the reader read, if the reader has asked for that, and waits until the producer has the turn again. It
// reports whether it has waited. Only the producer may call Yield, between two messages.
func (in *Inbox) Yield() bool {
	t := in.lead.Load()
	if !t.Asked() {
		return false
	}
	in.Publish()
	t.Lend()
	return true
}

// Recall ends what Lend has begun. Only the producer may call Recall, and only while it has the turn.
func (in *Inbox) Recall() {
	t := in.lead.Swap(nil)
	t.End()
}

// tell wakes a reader that reads the link, because something is in the inbox.
func (in *Inbox) tell() { in.lead.Load().Tell() }
