package schedule_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/internal/schedule"
	"github.com/redial-go/redial/reconnect/backoff"
)

// The figures of the slow waits with the default policy, in virtual time. A client is lost at 0 and refused
// for some time.

var (
	unauthorized = backoff.Verdict{Class: backoff.ClassSlow}                             // 401
	noSuchHost   = backoff.Verdict{Class: backoff.ClassSlow, Lenient: true, Local: true} // NXDOMAIN
)

// late returns how long after the last refusal 2,000 clients are back, sorted.
func late(v backoff.Verdict, refused time.Duration) (all []time.Duration) {
	for seed := range uint64(2000) {
		d := schedule.NewDials(nil, rand.New(rand.NewPCG(seed, 1)))
		start := time.Unix(0, 0)
		now := start
		d.Start(now)
		d.Next(now)
		d.Answered(0, now)
		d.Next(now)
		for d.Ended(failed, time.Hour, now); now.Before(start.Add(refused)); {
			if a := d.Next(now); a.Do == schedule.DoDial {
				d.Failed(a.Which, v, now)
			} else {
				now = a.At
			}
		}
		all = append(all, now.Sub(start)-refused)
	}
	slices.Sort(all)
	return all
}

// Promise 9: what was mended soon is noticed soon.
func TestAClientIsBackSoonAfterARefusalThatWasMended(t *testing.T) {
	for name, c := range map[string]struct {
		verdict     backoff.Verdict
		refused     time.Duration
		median, p95 time.Duration
	}{
		"401 for 5 s":                   {unauthorized, 5 * sec, 12 * sec, 20 * sec},
		"401 for 30 s":                  {unauthorized, 30 * sec, 12 * sec, 20 * sec},
		"no such host for 30 s":         {noSuchHost, 30 * sec, 12 * sec, 20 * sec},
		"401 for 5 min":                 {unauthorized, 5 * time.Minute, 60 * sec, 120 * sec},
		"401 for an hour, as before":    {unauthorized, time.Hour, 70 * sec, 150 * sec},
		"no such host for a short time": {noSuchHost, 2 * sec, 12 * sec, 20 * sec},
	} {
		all := late(c.verdict, c.refused)
		median, p95 := all[len(all)/2], all[len(all)*95/100]
		t.Logf("%s: %.1f s late in the median, p95 %.1f, at worst %.1f", name, median.Seconds(), p95.Seconds(), all[len(all)-1].Seconds())
		require.LessOrEqual(t, median, c.median, name)
		require.LessOrEqual(t, p95, c.p95, name)
	}
}

// Promise 3: a server that refuses for a day is dialed at most 760 times, whether it refuses dials or
// sessions, and after how long.
func TestAServerThatRefusesForADayIsDialedSeldom(t *testing.T) {
	for name, v := range map[string]backoff.Verdict{"401": unauthorized, "no such host": noSuchHost} {
		for _, ready := range []time.Duration{-1, 0, 5 * sec, 50 * sec, 2*time.Minute - 1, 2 * time.Minute, time.Hour} {
			if v.Lenient && ready >= 0 {
				continue
			}
			most, sum := 0, 0
			for seed := range uint64(200) {
				n := len(server{ready, v}.walk(schedule.DialOptions{}, seed, 24*time.Hour))
				most, sum = max(most, n), sum+n
			}
			t.Logf("%s, ready for %v: %d dials a day, at most %d", name, ready, sum/200, most)
			require.LessOrEqual(t, most, 760, "%s, %v", name, ready)
		}
	}
}
