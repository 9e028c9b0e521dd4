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
