package backoff

import "time"

// Action is what to do next.
type Action struct {
	Do    Do
	Which int       // 0 or 1, with Dial, Keep and Cut
	Try   Try       // with Dial; its Connected is nil
	At    time.Time // when to call Next again, with Wait; zero: when something has happened

	Kicked bool // because of a kick: with Keep not because the handshake hangs, with Dial before the wait was over
}

// Do is the kind of an [Action].
type Do uint8

// The kinds.
const (
	Wait Do = iota // until Action.At
	Dial           // begin the dial
	Keep           // nothing but this: the dial hangs and goes on, and another will begin beside it
	Cut            // cancel the dial
	Stop           // the policy gave up, or a verdict was ClassStop
)
