package watch

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect/budget"
)

var errBroken = errors.New("broken pipe")

func TestAPingThatFailsEndsTheSessionAfterLastWords(t *testing.T) {
	fails := func(context.Context) error { time.Sleep(time.Second); return errBroken }
	late := func(ctx context.Context) error { <-ctx.Done(); return errBroken }
	play(t, []scene{
		{name: "none", liveness: limited, special: &special{ping: fails}, until: "1m", want: "8s probe 8s, 9s canceled 1s, 10s cut: broken pipe"},
		{name: "a close frame", liveness: limited, special: &special{ping: fails}, until: "1m",
			script: []step{{"9500ms", func(w *world) { w.fake.Fail(&conn.CloseError{Code: 1013}) }}},
			want:   "8s probe 8s, 9s canceled 1s, 9.5s cut: read: " + (&conn.CloseError{Code: 1013}).Error()},
		{name: "Shutdown", liveness: limited, special: &special{ping: fails}, script: []step{{"8500ms", leave}}, until: "1m", want: "8s probe 8s, 9s canceled 1s"},
		{name: "too late", liveness: limited, special: &special{ping: late}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s failed 8s, 16s probe 16s, 24s failed 8s, 24s cut: peer is silent"},
	})
}

// A pong counts even if the connection does not note it as bytes.
func TestTheAnswerToAPingIsASignOfLifeWhateverTheClockSays(t *testing.T) {
	answers := func(context.Context) error { time.Sleep(7 * time.Second); return nil }
	play(t, []scene{{name: "pongs", liveness: limited, special: &special{ping: answers}, until: "30s",
		want: "8s probe 8s, 15s done 7s, 15s probe 15s, 22s done 7s, 22s probe 22s, 29s done 7s, 29s probe 29s"}})
}

func TestAnErrorOfProbeEndsTheSessionUnlessItsContextHasEnded(t *testing.T) {
	probe := func(f func(ctx context.Context, write func(conn.Message) error) error) LivenessOptions {
		return LivenessOptions{Limit: 24 * time.Second, Probe: f}
	}
	fails := func(context.Context, func(conn.Message) error) error { time.Sleep(time.Second); return errBroken }
	begins := func(ctx context.Context, _ func(conn.Message) error) error { go func() { <-ctx.Done() }(); return nil } // the bubble waits for it
	writes := func(_ context.Context, write func(conn.Message) error) error { return write(conn.Message{}) }
	play(t, []scene{
		{name: "in time", liveness: probe(fails), until: "1m", want: "8s probe 8s, 9s failed 1s, 9s cut: broken pipe"},
		{name: "Shutdown", liveness: probe(fails), script: []step{{"8500ms", leave}}, until: "1m", want: "8s probe 8s, 9s failed 1s"},
		{name: "late", liveness: probe(func(ctx context.Context, _ func(conn.Message) error) error { <-ctx.Done(); return errBroken }), until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s failed 8s, 16s probe 16s, 24s failed 8s, 24s cut: peer is silent"},
		{name: "none, late", liveness: probe(func(ctx context.Context, _ func(conn.Message) error) error { <-ctx.Done(); return nil }), until: "17s",
			want: "8s probe 8s, 16s done 8s, 16s probe 16s"},
		{name: "Goexit", liveness: probe(func(context.Context, func(conn.Message) error) error { runtime.Goexit(); return nil }), until: "1m",
			want: "8s probe 8s, 8s cut: Liveness.Probe: the function did not return, but ended its goroutine (runtime.Goexit)"},
		{name: "of its write, before last words", liveness: probe(writes), special: &special{write: func(conn.Message) error { return errBroken }}, until: "1m",
			want: "8s probe 8s, 8s failed 0s, 9s cut: broken pipe"},
		{name: "and what it has begun ends with it", liveness: probe(begins), until: "9s", want: "8s probe 8s, 8s done 0s"},
	})
}

func TestStopEndsTheProbeAndWaitsForIt(t *testing.T) {
	lingers := func(ctx context.Context, _ func(conn.Message) error) error {
		<-ctx.Done()
		time.Sleep(3 * time.Second)
		return ctx.Err()
	}
	const cut = ", 10s cut: use of closed network connection"
	lingering := LivenessOptions{Limit: 24 * time.Second, Probe: lingers}
	every := LivenessOptions{Limit: 24 * time.Second, Probe: asks, ProbeEvery: 8 * time.Second}
	play(t, []scene{
		{name: "a Probe that lingers", liveness: lingering, script: []step{{"10s", end}}, until: "1m",
			want: "8s probe 8s, 10s await Probe, 13s canceled 5s, 13s stopped" + cut},
		{name: "Stop alone", liveness: lingering, script: []step{{"10s", func(w *world) { w.liveness.Stop() }}}, until: "1m",
			want: "8s probe 8s, 10s await Probe, 13s canceled 5s"},
		{name: "none under way", liveness: limited, pong: time.Second, script: []step{{"10s", end}}, until: "1m", want: "8s probe 8s, 9s done 1s, 10s stopped" + cut},
		{name: "a hook under way", liveness: limited, hook: 3 * time.Second,
			script: []step{{"1s", block("1m")}, {"33s", end}}, until: "1m",
			want: "32s overdue reader 24s, 35s stopped, 33s cut: use of closed network connection"},
		{name: "a hook before a probe", liveness: every, hook: 3 * time.Second,
			script: []step{{"1s", block("1m")}, {"33s", end}}, until: "1m",
			want: "8s probe 0s, 11s done 3s, 16s probe 0s, 19s done 3s, 24s probe 0s, 27s done 3s, " +
				"32s overdue reader 24s, 35s stopped, 33s cut: use of closed network connection"},
	})
}

// The message at the beginning fills the window.
func TestAProbeThatTheWindowHasHeldIsNone(t *testing.T) {
	wrote := step{"", func(w *world) { w.link.Wrote(1) }}
	pings := func(w *world) { w.note("%d pings", w.fake.Pings()) }
	play(t, []scene{
		{name: "silent", liveness: limited, window: budget.Window{N: 1, Per: 21 * time.Second}, script: []step{wrote, {"47s", pings}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s late 8s, 16s probe 16s, 24s late 8s, 24s probe 24s, 32s late 8s, " +
				"32s probe 32s, 40s late 8s, 40s probe 40s, 2 pings, 48s late 8s, 48s cut: peer is silent"},
		{name: "Check", liveness: limited, window: budget.Window{N: 1, Per: 21 * time.Second}, script: []step{wrote, {"3s", check}}, until: "17s",
			want: "3s probe 3s, 8s late 5s, 8s probe 8s, 16s late 8s, 16s probe 16s"},
		{name: "never probed", liveness: limited, window: budget.Window{N: 1, Per: time.Hour}, script: []step{wrote}, until: "33s", patience: 1,
			want: "0s probe 0s, 16s late 16s, 16s probe 16s, 32s late 16s, 32s probe 32s", patienceAfter: 1},
		{name: "another write was held", liveness: limited, window: budget.Window{N: 1, Per: 5 * time.Second}, until: "1m", patienceAfter: 1,
			script: []step{wrote, {"3s", func(w *world) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				w.link.WriteFirst(ctx, conn.Message{})
			}}},
			want: "8s probe 8s, 16s late 8s, 16s probe 16s, 24s late 8s, 24s cut: peer is silent"},
	})
}

// Nobody would watch the session any more.
func TestAHookThatDoesNotReturnEndsTheSession(t *testing.T) {
	const because = ": the function did not return, but ended its goroutine (runtime.Goexit)"
	play(t, []scene{
		{name: "ProbeStart", liveness: limited, exits: "ProbeStart", until: "1m", want: "8s probe 8s, 8s cut: Trace.ProbeStart" + because},
		{name: "ProbeDone", liveness: limited, exits: "ProbeDone", until: "1m", patienceAfter: 0, want: "8s probe 8s, 16s late 8s, 16s cut: Trace.ProbeDone" + because},
		{name: "SlowHandler", liveness: limited, exits: "SlowHandler",
			script: []step{{"3s", handle("1m")}}, until: "1h",
			want: "11s slow OnMessage 8s, 11s cut: Trace.SlowHandler" + because},
		{name: "Overdue", liveness: limited, exits: "Overdue", script: []step{{"3s", block("1m")}}, until: "1h", want: "32s overdue reader 24s, 32s cut: Trace.Overdue" + because},
	})
}
