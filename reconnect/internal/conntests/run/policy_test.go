package run_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/conntests/scene"
)

// slowPolicy is a policy with the optional methods, one of which is slow.
type slowPolicy struct {
	start, slowWait time.Duration
}

func (*slowPolicy) Next(backoff.History, *rand.Rand) (backoff.Step, bool) {
	return backoff.Step{Wait: 3 * time.Second}, true
}

func (p *slowPolicy) Start(*rand.Rand) backoff.Step {
	time.Sleep(p.start)
	return backoff.Step{Connect: 7 * time.Second, Handshake: 9 * time.Second}
}

func (p *slowPolicy) SlowWait() backoff.SlowWait {
	time.Sleep(p.slowWait)
	return backoff.SlowWait{Min: -1, Max: -1}
}

// The optional methods of a policy are timed like Next, and count: the first dial has the limits of Start, and a
// negative SlowWait leaves the wait to Next.
func TestOptionalMethodsOfPolicyAreTimed(t *testing.T) {
	const long = 2 * time.Minute
	for _, c := range []struct {
		policy slowPolicy
		events []string
	}{
		{slowPolicy{}, []string{"dial 1 for 16s", "wait 3s", "dial 2 for 46s"}},
		{slowPolicy{start: long}, []string{"slow Policy", "dial 1 for 16s", "wait 3s", "dial 2 for 46s"}},
		{slowPolicy{slowWait: long}, []string{"dial 1 for 16s", "slow Policy", "wait 0s", "dial 2 for 46s"}},
	} {
		scene.InBubble(t, func(t *testing.T, s *scene.Scene) {
			var seen scene.Notes
			o := traced()
			o.Run.Policy = &c.policy
			o.Run.Trace = &reconnect.Trace{
				SlowHandler: func(e reconnect.SlowHandler) { seen.Add("slow " + e.What) },
				DialStart:   func(e reconnect.DialStart) { seen.Add(fmt.Sprintf("dial %d for %v", e.Try, e.Limit)) },
				WaitStart:   func(e reconnect.WaitStart) { seen.Add(fmt.Sprintf("wait %v", e.Drawn)) },
			}
			s.Open(o)
			time.Sleep(c.policy.start)
			s.WantDial().Refuse(backoff.Slow(errors.New("refused")))
			time.Sleep(c.policy.slowWait + 4*time.Second)
			require.Equal(t, c.events, seen.All())
		})
	}
}
