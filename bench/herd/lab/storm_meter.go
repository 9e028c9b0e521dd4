package lab

import (
	"sync/atomic"
	"time"
)

// stormCounts are written by the clients.
type stormCounts struct{ ok, timedOut, failed, away atomic.Int64 }

// stormMeter notes what the clients count, second by second. All but the counts belongs to one
// goroutine.
type stormMeter struct {
	each    func(StormSecond) // may be nil
	counts  stormCounts
	started time.Time
	before  StormSecond // totals
	seconds []StormSecond
}

// second completes a second, which ends now, and notes it.
func (m *stormMeter) second(now time.Time, s StormSecond) {
	total := StormSecond{OK: int(m.counts.ok.Load()), TimedOut: int(m.counts.timedOut.Load()), Failed: int(m.counts.failed.Load())}
	s.At, s.Away = now.Sub(m.started).Round(100*time.Millisecond), int(m.counts.away.Load())
	s.OK, s.TimedOut, s.Failed = total.OK-m.before.OK, total.TimedOut-m.before.TimedOut, total.Failed-m.before.Failed
	m.before = total
	m.seconds = append(m.seconds, s)
	if m.each != nil {
		m.each(s)
	}
}

// isWell reports whether stormShare of the requests that ended in the last stormWell seconds succeeded.
func isWell(seconds []StormSecond) bool {
	good, ended := 0, 0
	for _, s := range seconds[max(len(seconds)-stormWell, 0):] {
		good, ended = good+s.OK, ended+s.OK+s.TimedOut+s.Failed
	}
	return good > 0 && float64(good) >= stormShare*float64(ended)
}
