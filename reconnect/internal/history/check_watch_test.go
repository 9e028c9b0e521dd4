package history

import (
	"math/rand/v2"
	"time"

	"github.com/redial-go/redial/reconnect"
)

// watch is an event: somebody watches for a while, and sees what the trace of the Conn sees. An event that has begun when it begins may
// be missing, and one that has begun when it ends may still come.
func (w *world) watch(r *rand.Rand, _ Event) {
	counted := []string{"session ready", "session done", "wait start", "rotate done"}
	seen := map[string]int{}
	sees := func(name string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		seen[name]++
	}
	before := w.endedNow(counted)
	stop := w.conn.Watch(&reconnect.Trace{
		SessionReady: func(*reconnect.Session) { sees("session ready") },
		SessionDone:  func(reconnect.SessionDone) { sees("session done") },
		WaitStart:    func(reconnect.WaitStart) { sees("wait start") },
		RotateDone:   func(reconnect.RotateDone) { sees("rotate done") },
	})
	time.Sleep(upTo(r, 5*time.Second))
	stop()
	stop()
	after := w.endedNow(counted)
	time.Sleep(10 * time.Second) // hooks that had begun are over
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range counted {
		happened := after[name] - before[name]
		w.check(WatchSees, happened-1 <= seen[name] && seen[name] <= happened+1, "%d times %s, of %d", seen[name], name, happened)
	}
}

// endedNow returns how many events of some kinds there were.
func (w *world) endedNow(kinds []string) map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, k := range kinds {
		counts[k] = w.ended[k]
	}
	return counts
}

// WatchSees is the invariant of Watch.
const WatchSees Invariant = "12: Watch sees each event while it lasts, and no other"
