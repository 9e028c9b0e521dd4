package dialer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// limits are how long the stages of one try at one endpoint may take.
type limits struct{ connect, handshake time.Duration }

// limitsFor takes each limit from the dialer's field, then from what the
// supervisor says about this try, then from the default.
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

// patience is both limits together.
func (l limits) patience() time.Duration { return l.connect + l.handshake }

func firstPositive(durations ...time.Duration) time.Duration {
	for _, d := range durations {
		if d > 0 {
			return d
		}
	}
	return 0
}

// stages ends a try whose present stage takes longer than its limit.
type stages struct {
	limits
	end context.CancelCauseFunc

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  bool
}

// connecting starts the first stage.
func (s *stages) connecting() { s.enter(s.connect, "not connected within %v") }

// handshaking starts the second stage.
func (s *stages) handshaking() { s.enter(s.handshake, "handshake not answered within %v") }

func (s *stages) enter(limit time.Duration, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(limit, func() { s.end(&limitError{fmt.Sprintf(text, limit)}) })
}

// stop ends the last stage: no limit strikes any more, and no stage begins.
func (s *stages) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// undated is a context without its deadline, at which it still ends. Package net
// reads the deadline and would be first to say "i/o timeout", before anyone
// could tell that the attempt is over and not just this endpoint.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
