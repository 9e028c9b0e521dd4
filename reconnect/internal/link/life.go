package link

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/xsync"
)

// Life is what all links of one Conn share. It is a context that ends when the Conn is to end.
type Life struct {
	xsync.Context
	Closed  atomic.Bool // Close was called: nothing more is read
	Leaving atomic.Bool // Shutdown was called: nothing more is accepted to be sent
	// a session was closed so that another can take its place: messages wait, whatever WhenDown says
	Bridging atomic.Bool
	Changed  xsync.Signal // sent with each new status of the Conn, when a link is lost, and when the end begins
	Counts   Counts
}

// Counts are the counts since the beginning of the Conn.
type Counts struct {
	Sessions              atomic.Uint64 // connections that were dialed
	Written, WrittenBytes atomic.Uint64 // written by the goroutine that holds the write slot
	Dropped, Unknown      atomic.Uint64 // messages with these fates
	Probes                atomic.Uint64
	KeepAliveMessages     atomic.Uint64
}

// Wrote counts a message that was written.
func (n *Counts) Wrote(m conn.Message) {
	n.Written.Add(1)
	n.WrittenBytes.Add(uint64(len(m.Data)))
}

// Instant is a time by the monotonic clock. It has a third of the size of a [time.Time].
type Instant = time.Duration

// epoch is a whole second, so that in a bubble of [testing/synctest] Milliseconds rounds in the same way in each process.
var epoch = wholeSecond(time.Now())

func wholeSecond(t time.Time) time.Time { return t.Add(-time.Duration(t.Nanosecond())) }

// Now returns the present instant. It is negative at the beginning of a bubble of
// [testing/synctest].
func Now() Instant { return time.Since(epoch) }

// At returns the instant of t.
func At(t time.Time) Instant { return t.Sub(epoch) }

// Time returns the time of an instant.
func Time(at Instant) time.Time { return epoch.Add(at) }

// Milliseconds returns t in ms, in 32 bits, of which the difference of two is right within weeks.
func Milliseconds(t Instant) uint32 { return uint32(t.Milliseconds()) }

// Ended is the error of a session that we have ended, and its reason.
type Ended struct {
	Text string
	Why  backoff.Reason
}

func (e *Ended) Error() string { return e.Text }

// Reason returns the reason for [backoff.ReasonOf].
func (e *Ended) Reason() backoff.Reason { return e.Why }

// ReasonOf returns the reason why a session has ended because of err.
func ReasonOf(err error) backoff.Reason {
	_, protocol := errors.AsType[*conn.ProtocolError](err)
	_, big := errors.AsType[*conn.TooBigError](err)
	_, slow := errors.AsType[*conn.SlowMessageError](err)
	switch {
	case protocol || big:
		return backoff.ReasonProtocol
	case slow:
		return backoff.ReasonTimeout
	}
	return backoff.ReasonOf(err)
}
