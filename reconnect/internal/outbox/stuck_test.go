package outbox

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
	"github.com/redial-go/redial/reconnect/internal/outbox/queue"
)

// stuck returns an outbox with a rotation: messages are queued for the old session alone, which is stuck in
// the first of them, and the next session is ready. end ends it.
func stuck(t testing.TB, own int) (q *Outbox, end func()) {
	life := new(link.Life)
	life.Counts.Sessions.Store(1)
	one, peer := begin(life, 1)
	two, _ := begin(life, 2)
	q = New(Options{
		Limits: queue.Limits{Messages: 1 << 30, Bytes: 1 << 30}, Down: Keep,
		Receipt: func(*Receipt) {}, Await: func(done <-chan struct{}, _ string) { <-done },
	}, life, one, nil, 0, false)
	peer.Hold()
	m := out("own")
	m.Session = 1
	for range own {
		require.NoError(t, q.Accept(m))
	}
	q.Attach(two, func() {})
	return q, func() {
		one.Cut(errLost)
		two.Cut(errLost)
		q.End()
	}
}

// However much is queued for the old session, a Send looks at each of these messages at most once.
func TestSendPassesMessagesOfStuckSessionOnce(t *testing.T) {
	const own, sends = 2000, 500
	q, end := stuck(t, own)
	defer end()
	looks := 0 // guarded by q.mu
	q.mu.Lock()
	mine := q.lane.mine
	q.lane.mine = func(e *entry) bool { looks++; return mine(e) }
	q.mu.Unlock()
	for range sends {
		require.NoError(t, q.Accept(out("m")))
		for q.flushing() { // until it is written, so that each Send begins a batch
			runtime.Gosched()
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	require.LessOrEqual(t, looks, own+10*sends)
}

// flushing reports whether the next session has a flusher.
func (q *Outbox) flushing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lane.flushing
}

// The cost of a Send does not grow with the queue while the old session of a rotation is stuck in a write:
// compare -benchtime 10000x and 40000x.
func BenchmarkSendWhileTheOldSessionIsStuck(b *testing.B) {
	life := new(link.Life)
	one, peer := begin(life, 1)
	two, _ := begin(life, 2)
	q := New(Options{
		Limits: queue.Limits{Messages: 1 << 30, Bytes: 1 << 30}, Down: Keep,
		Receipt: func(*Receipt) {}, Await: func(done <-chan struct{}, _ string) { <-done },
	}, life, one, nil, 0, false)
	peer.Hold()
	require.NoError(b, q.Accept(out("stuck")))
	for stuck := false; !stuck; {
		q.mu.Lock()
		stuck = q.lane.sending
		q.mu.Unlock()
	}
	q.Attach(two, func() {})
	m := out("m")
	for b.Loop() {
		if err := q.Accept(m); err != nil {
			b.Fatal(err)
		}
	}
	one.Cut(errLost)
	two.Cut(errLost)
	q.End()
}

// Nor does it grow with what is queued for the old session alone.
func BenchmarkSendBesideMessagesOfTheOldSession(b *testing.B) {
	q, end := stuck(b, 40_000)
	m := out("m")
	for b.Loop() {
		if err := q.Accept(m); err != nil {
			b.Fatal(err)
		}
	}
	end()
}
