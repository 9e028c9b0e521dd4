package bridge_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// policyFunc is a Policy.
type policyFunc func(h backoff.History) (backoff.Step, bool)

func (f policyFunc) Next(h backoff.History, _ *rand.Rand) (backoff.Step, bool) { return f(h) }

func (s *scene) failOnce(p *store) { s.set(func() { p.errs = []error{errFetch} }) }

// No lock is held while Policy runs.
func TestThePolicyMayUseTheBridge(t *testing.T) {
	var s *scene
	o := &options{Policy: policyFunc(func(backoff.History) (backoff.Step, bool) {
		stats := s.b.Stats()
		return backoff.Step{Wait: time.Second}, stats.Stale == 1 && stats.Failed == 1
	})}
	p := &store{last: 7}
	withStore(t, p, o, func(sc *scene) {
		s = sc
		s.failOnce(p)
		s.seam(reconnect.Seam{Lost: 1})
		time.Sleep(time.Second)
		s.want("a: stale 6-", "a: past 6", "a: past 7", "a: healed 7")
	})
}

// What was decided for a stream that is forgotten meanwhile, or begun anew, does not count.
func TestAStreamMayBeForgottenWhileThePolicyDecides(t *testing.T) {
	var s *scene
	o := &options{Policy: policyFunc(func(backoff.History) (backoff.Step, bool) {
		s.b.Forget("a")
		s.b.Refetch("a", 0)
		return backoff.Step{}, false
	}), OnRetry: func(string, error, time.Duration) { t.Error("the call is not a retry") }}
	p := &store{last: 7}
	withStore(t, p, o, func(sc *scene) {
		s = sc
		s.failOnce(p)
		s.live("a", 8)
		s.want("a: stale 6-7", "a: stale 1-", "a: past 1", "a: past 2", "a: past 3", "a: past 4",
			"a: past 5", "a: past 6", "a: past 7", "a: healed 7")
	})
}

// A new reason to fetch that comes while Policy gives up counts.
func TestARefetchWhileThePolicyGivesUpIsDone(t *testing.T) {
	var s *scene
	o := &options{Policy: policyFunc(func(backoff.History) (backoff.Step, bool) {
		s.b.Refetch("a", 0)
		return backoff.Step{}, false
	}), OnRetry: func(string, error, time.Duration) { t.Error("the call is not a retry") }}
	p := &store{last: 7}
	withStore(t, p, o, func(sc *scene) {
		s = sc
		s.failOnce(p)
		s.live("a", 8)
		s.want("a: stale 6-7", "a: past 6", "a: past 7", "a: live 8", "a: healed 8")
	})
}

// A Policy that ends the goroutine of the loop ends the loop. The next one fetches.
func TestAStreamIsFetchedAgainAfterThePolicyHasEndedTheLoop(t *testing.T) {
	var exits sync.Once
	o := &options{Policy: policyFunc(func(backoff.History) (backoff.Step, bool) {
		exits.Do(runtime.Goexit)
		return backoff.Step{}, true
	})}
	p := &store{last: 7}
	withStore(t, p, o, func(s *scene) {
		s.failOnce(p)
		s.live("a", 8)
		synctest.Wait()
		s.want("a: stale 6-7")
		s.read()
		s.want("a: past 6", "a: past 7", "a: live 8", "a: healed 8")
	})
}

// Once the past has lacked a number, a server that fails is not asked without waits.
func TestAServerThatFailsIsAskedWithWaitsAfterPatience(t *testing.T) {
	p := &store{last: 6}
	withStore(t, p, &options{Policy: oneSecond, Patience: 2 * time.Second}, func(s *scene) {
		s.live("a", 9) // the past lacks 7 and 8
		s.want("a: stale 6-8", "a: past 6")
		errs := make([]error, 30)
		for i := range errs {
			errs[i] = errFetch
		}
		s.set(func() { p.errs = errs })
		before := s.calls()
		time.Sleep(30*time.Second + time.Millisecond)
		require.Equal(t, before+30, s.calls())
		s.set(func() { p.last = 8 })
		time.Sleep(time.Second)
		s.want("a: past 7", "a: past 8", "a: live 9", "a: healed 9")
	})
}
