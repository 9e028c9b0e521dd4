//go:build !js

package main

import (
	"context"
	"sync"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// sentLog holds the lines that the room has not acknowledged yet, in order. Any goroutine may
// call its methods.
type sentLog struct {
	mu      sync.Mutex    // guards what follows
	last    uint64        // the number of the last line
	lines   []entry       // neither acknowledged nor dropped
	lost    int           // how many lines were dropped or refused
	changed chan struct{} // closed, and replaced, when a line goes
}

// entry is one line.
type entry struct {
	id      uint64
	text    string
	message conn.Message // it must not change while it is queued
	queued  bool         // settle has not seen its fate yet
}

// maxUnsaid is how many lines may wait for an acknowledgement. After that the program reads
// no more input.
const maxUnsaid = 1000

func newSentLog() *sentLog { return &sentLog{changed: make(chan struct{})} }

// say gives text a number and passes it to send. It calls send with the lock held, so that
// lines are queued in the order of their numbers. So send must not wait, and Conn.Send does
// not.
func (l *sentLog) say(text string, send func(reconnect.Out) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	e := entry{id: l.last, text: text, queued: true, message: encode(message{Type: "say", ID: l.last, Text: text})}
	if err := send(reconnect.Out{Message: e.message, Tag: e.id}); err != nil {
		l.lost++
		return err
	}
	l.lines = append(l.lines, e)
	return nil
}

// settle records the fate of a line. If the line was dropped, settle returns its text.
func (l *sentLog) settle(r reconnect.Receipt) (unsaid string, dropped bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.lines {
		switch e := &l.lines[i]; {
		case e.id != r.Out.Tag:
		case r.Fate == reconnect.FateDropped:
			unsaid = e.text
			l.lines = append(l.lines[:i:i], l.lines[i+1:]...)
			l.lost++
			l.broadcast()
			return unsaid, true
		default: // written or unknown: wait for the acknowledgement
			e.queued = false
			return "", false
		}
	}
	return "", false // acknowledged already
}

// acknowledged forgets all lines up to id, and returns how many it forgot.
func (l *sentLog) acknowledged(id uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.lines) && l.lines[n].id <= id {
		n++
	}
	l.lines = l.lines[n:]
	l.broadcast()
	return n
}

// pending returns the lines to send again, the number of all lines that are not acknowledged,
// and the number of the last of them. Call it when settle has seen all fates.
func (l *sentLog) pending() (again []conn.Message, all int, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.lines {
		last = e.id
		if !e.queued {
			again = append(again, e.message)
		}
	}
	return again, len(l.lines), last
}

// awaitRoom waits until there is room for another line.
func (l *sentLog) awaitRoom(ctx context.Context) error {
	return l.await(ctx, func() bool { return len(l.lines) < maxUnsaid })
}

// awaitEmpty waits until all lines are acknowledged.
func (l *sentLog) awaitEmpty(ctx context.Context) error {
	return l.await(ctx, func() bool { return len(l.lines) == 0 })
}

// unacknowledged returns the lines that are not acknowledged, and how many other lines were
// dropped or refused.
func (l *sentLog) unacknowledged() (lines []string, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.lines {
		lines = append(lines, e.text)
	}
	return lines, l.lost
}

// await waits until yes returns true, or returns the cause of ctx. It calls yes with the lock
// held.
func (l *sentLog) await(ctx context.Context, yes func() bool) error {
	for {
		l.mu.Lock()
		done, changed := yes(), l.changed
		l.mu.Unlock()
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

// broadcast wakes the goroutines in await. The caller holds mu.
func (l *sentLog) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}
