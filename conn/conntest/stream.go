package conntest

import (
	"bytes"
	"sync"
	"time"
)

// defaultWindow is how much may be written and not yet read, in bytes.
const defaultWindow = 64 << 10

// ending is how a stream ends.
type ending uint8

const (
	none ending = iota
	half        // FIN: no more data
	fin         // FIN, and the other side has stopped reading
	rst         // RST
)

// segment is data or an ending on the wire.
type segment struct {
	data []byte
	end  ending
	at   time.Time // not to arrive earlier, nor before what is ahead of it
}

// stream is one direction of a pipe, whose lock guards it. Bytes go from Write to
// the wire, where they may be late, and from there to the inbox, where Read
// finds them. On a perfect network they skip the wire.
type stream struct {
	pipe    *Pipe
	changed sync.Cond // both its reader and its writer wait for it

	wire   []segment
	timer  *time.Timer // calls advance when the head of the wire may arrive
	inbox  []byte
	read   int // bytes of inbox already read
	queued int // bytes on the wire and unread
	window int

	written int64
	cut     cut
	shut    bool // half-closed: writes fail
	ended   bool // nothing that is written will arrive any more
	arrived ending

	stalled bool
	latency time.Duration
	trickle trickle
}

// cut is an armed cut; the zero value is none.
type cut struct {
	after int64 // bytes to pass until then
	with  ending
}

// trickle is a limit of share bytes per interval; with a share of 0 it is none.
type trickle struct {
	share    int
	interval time.Duration
	next     time.Time // when the next share is due; zero: no burst under way
	credit   int       // what is left of the last share
}

func (l *stream) init(p *Pipe) {
	l.pipe, l.window = p, defaultWindow
	l.changed.L = &p.mu
}

// room returns how many bytes the window still takes.
func (l *stream) room() int { return l.window - l.queued }

// send takes data and reports whether the connection was cut in it.
func (l *stream) send(data []byte) bool {
	l.written += int64(len(data))
	if l.cut.after == 0 {
		l.put(data)
		return false
	}
	pass := min(int64(len(data)), l.cut.after)
	l.put(data[:pass])
	l.cut.after -= pass
	if l.cut.after == 0 {
		l.pipe.sever(l.cut.with)
		return true
	}
	return false
}

// put takes data. Behind an ending the data only fills the window.
func (l *stream) put(data []byte) {
	if len(data) == 0 {
		return
	}
	l.queued += len(data)
	switch {
	case l.ended:
	case len(l.wire) == 0 && !l.stalled && l.latency == 0 && l.trickle.share == 0:
		l.arrive(data)
	default:
		l.push(segment{data: bytes.Clone(data)})
	}
}

// finish puts an ending behind what was written; nothing follows it.
func (l *stream) finish(with ending) {
	if l.ended && with == half {
		return
	}
	l.ended = true
	l.push(segment{end: with})
}

// halfClose ends the stream for its writer.
func (l *stream) halfClose() {
	l.shut = true
	l.finish(half)
	l.changed.Broadcast()
}

// push appends to the wire and delivers what is due.
func (l *stream) push(s segment) {
	if l.latency > 0 {
		s.at = time.Now().Add(l.latency)
	}
	l.wire = append(l.wire, s)
	l.advance()
}

// advance moves the segments that are due from the wire to the inbox, and sets the timer
// for the others.
func (l *stream) advance() {
	if len(l.wire) == 0 || l.stalled {
		return
	}
	now := time.Now()
	for len(l.wire) > 0 {
		s := &l.wire[0]
		wait := s.at.Sub(now)
		if wait <= 0 {
			wait = l.ration(s, now)
		}
		if wait > 0 {
			if l.timer == nil {
				l.timer = time.AfterFunc(wait, func() { l.pipe.each(Both, (*stream).advance) })
			} else {
				l.timer.Reset(wait)
			}
			return
		}
		l.arrive(s.data)
		if s.end > l.arrived {
			l.arrived = s.end
			l.pipe.wakeAll()
		}
		*s = segment{}
		l.wire = l.wire[1:]
	}
	l.wire, l.trickle.next = nil, time.Time{}
}

// ration lets at most the share of this interval through, and returns how long
// what is left of s has to wait.
func (l *stream) ration(s *segment, now time.Time) time.Duration {
	for t := &l.trickle; t.share > 0 && len(s.data) > 0; {
		if t.next.IsZero() {
			t.next, t.credit = now.Add(t.interval), 0
		}
		if t.credit == 0 {
			if wait := t.next.Sub(now); wait > 0 {
				return wait
			}
			t.credit, t.next = t.share, t.next.Add(t.interval)
		}
		n := min(t.credit, len(s.data))
		l.arrive(s.data[:n])
		s.data = s.data[n:]
		t.credit -= n
	}
	return 0
}

// arrive appends to the inbox.
func (l *stream) arrive(data []byte) {
	if len(data) == 0 {
		return
	}
	if l.read > 0 && len(l.inbox)+len(data) > cap(l.inbox) {
		l.inbox = l.inbox[:copy(l.inbox, l.inbox[l.read:])]
		l.read = 0
	}
	l.inbox = append(l.inbox, data...)
	l.changed.Broadcast()
}

// take moves bytes from the inbox to b; an idle stream holds no large buffer.
func (l *stream) take(b []byte) int {
	n := copy(b, l.inbox[l.read:])
	l.read += n
	l.queued -= n
	if l.read == len(l.inbox) {
		l.inbox, l.read = l.inbox[:0], 0
		if cap(l.inbox) > 1<<10 {
			l.inbox = nil
		}
	}
	l.changed.Broadcast()
	return n
}

// resetNow loses what is on the wire and delivers an RST.
func (l *stream) resetNow() {
	l.drop()
	l.ended, l.arrived = true, rst
	l.changed.Broadcast()
}

// drop forgets the wire.
func (l *stream) drop() {
	for _, s := range l.wire {
		l.queued -= len(s.data)
	}
	l.wire = nil
	if l.timer != nil {
		l.timer.Stop()
	}
}
