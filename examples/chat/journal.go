//go:build !js

package main

import (
	"context"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// journal is what was typed and is not acknowledged yet, in order. Its methods may
// be called from any goroutine.
type journal struct {
	mu      sync.Mutex // guards what follows
	last    uint64     // number that was given
	lines   []entry    // not acknowledged, nor dropped
	lost    int        // lines that were not said
	changed chan struct{}
}

// entry is one line.
type entry struct {
	id      uint64
	text    string
	message conn.Message // the Conn's while it is queued
	queued  bool         // it has no fate yet, as far as we know
}

// maxUnsaid is how many lines may wait. Then no more are taken in.
const maxUnsaid = 1000

func newJournal() *journal { return &journal{changed: make(chan struct{})} }

// say gives text a number, and to send. That does not wait for the network, so it
// may be done under the lock: numbers are queued in order.
func (j *journal) say(text string, send func(reconnect.Out) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last++
	e := entry{id: j.last, text: text, queued: true, message: encode(message{Type: "say", ID: j.last, Text: text})}
	if err := send(reconnect.Out{Message: e.message, Tag: e.id}); err != nil {
		j.lost++
		return err
	}
	j.lines = append(j.lines, e)
	return nil
}

// told notes the fate of a message. It returns the line that will not be said, if
// that is it.
func (j *journal) told(r reconnect.Receipt) (unsaid string, dropped bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.lines {
		switch e := &j.lines[i]; {
		case e.id != r.Out.Tag:
		case r.Fate == reconnect.FateDropped:
			unsaid = e.text
			j.lines = append(j.lines[:i:i], j.lines[i+1:]...)
			j.lost++
			j.broadcast()
			return unsaid, true
		default: // Written or Unknown: the room will tell
			e.queued = false
			return "", false
		}
	}
	return "", false // acknowledged already
}

// acknowledged forgets all lines up to id, and returns how many those were.
func (j *journal) acknowledged(id uint64) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for n < len(j.lines) && j.lines[n].id <= id {
		n++
	}
	j.lines = j.lines[n:]
	j.broadcast()
	return n
}

// unanswered returns the lines that have to be sent again, and says how many wait in
// all and which is the last of these. It is right once all fates have been told.
func (j *journal) unanswered() (again []conn.Message, all int, last uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.lines {
		last = e.id
		if !e.queued {
			again = append(again, e.message)
		}
	}
	return again, len(j.lines), last
}

// room waits until there is room for another line.
func (j *journal) room(ctx context.Context) error {
	return j.await(ctx, func() bool { return len(j.lines) < maxUnsaid })
}

// empty waits until everything is acknowledged.
func (j *journal) empty(ctx context.Context) error {
	return j.await(ctx, func() bool { return len(j.lines) == 0 })
}

// rest returns the lines that have not been acknowledged, and how many are known
// not to have been said.
func (j *journal) rest() (lines []string, lost int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.lines {
		lines = append(lines, e.text)
	}
	return lines, j.lost
}

// await waits until yes, which is asked under the lock, or returns the cause of
// ctx.
func (j *journal) await(ctx context.Context, yes func() bool) error {
	for {
		j.mu.Lock()
		done, changed := yes(), j.changed
		j.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// broadcast wakes those in await. The lock is held.
func (j *journal) broadcast() {
	close(j.changed)
	j.changed = make(chan struct{})
}
