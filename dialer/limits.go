package dialer

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// limits are how long the stages of one attempt may take.
type limits struct{ connect, handshake time.Duration }

// limitsFor takes each limit from the dialer's field, then from t, then from the
// default.
func limitsFor(t backoff.Try, connect, handshake time.Duration) limits {
	return limits{
		connect:   firstPositive(connect, t.Connect, backoff.DefaultConnect),
		handshake: firstPositive(handshake, t.Handshake, backoff.DefaultHandshake),
	}
}

// validateLimits names the option that is wrong.
func validateLimits(connect, handshake time.Duration) error {
	switch {
	case connect < 0:
		return fmt.Errorf("ConnectTimeout: %v is negative", connect)
	case handshake < 0:
		return fmt.Errorf("HandshakeTimeout: %v is negative", handshake)
	}
	return nil
}

// total returns both limits together, or the longest Duration if that is shorter.
func (l limits) total() time.Duration {
	if l.connect > math.MaxInt64-l.handshake {
		return math.MaxInt64
	}
	return l.connect + l.handshake
}

func firstPositive(durations ...time.Duration) time.Duration {
	for _, d := range durations {
		if d > 0 {
			return d
		}
	}
	return 0
}

// stages ends an attempt whose present stage takes longer than its limit. It is used
// by one goroutine at a time.
type stages struct {
	limits
	end   context.CancelCauseFunc
	timer *time.Timer // of the present stage
}

// connecting starts the first stage.
func (s *stages) connecting() { s.start(s.connect, "not connected within %v") }

// handshaking starts the second stage.
func (s *stages) handshaking() { s.start(s.handshake, "handshake not answered within %v") }

func (s *stages) start(limit time.Duration, text string) {
	s.stop()
	s.timer = time.AfterFunc(limit, func() { s.end(&limitError{fmt.Sprintf(text, limit)}) })
}

// stop ends the present stage: its limit strikes no more.
func (s *stages) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// noDeadline is a context that ends at its deadline but does not show it, because
// package net would see the deadline and return "i/o timeout" before anybody could
// tell whether the dial is over or only the attempt.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }
