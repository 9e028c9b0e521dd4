package watch

import (
	"context"
	"testing"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/conn/conntest"
)

// asks is a Probe that does not wait for the answer.
func asks(context.Context, func(conn.Message) error) error { return nil }

// withProbe is limited with asks.
var withProbe = LivenessOptions{Limit: 24 * time.Second, Probe: asks}

// limited has the Limit of most scenes: a third of it is 8 s, and an eighth of that, 1 s, is a pulse.
var limited = LivenessOptions{Limit: 24 * time.Second}

func TestASilentPeerIsProbedAtEachThirdAndCutAtTheLimit(t *testing.T) {
	play(t, []scene{
		{name: "silent", liveness: limited, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s late 8s, 16s probe 16s, 24s late 8s, 24s cut: peer is silent"},
		{name: "silent, with a Probe", liveness: withProbe, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 8s done 0s, 16s probe 16s, 16s done 0s, 24s cut: peer is silent"},
		{name: "silent, and the limit grows", liveness: withProbe, script: []step{{"17s", func(w *world) { w.shared.patience.Store(1) }}}, until: "1m", patienceAfter: 2,
			want: "8s probe 8s, 8s done 0s, 16s probe 16s, 16s done 0s, 48s cut: peer is silent"},
		{name: "answers", liveness: limited, pong: 3 * time.Second, until: "25s",
			want: "8s probe 8s, 11s done 3s, 19s probe 8s, 22s done 3s"},
		{name: "answers each second probe", liveness: limited, script: []step{{"10s", pong(3 * time.Second)}, {"20s", pong(time.Hour)}}, until: "45s",
			want: "8s probe 8s, 16s late 8s, 16s probe 16s, 19s done 3s, 27s probe 8s, 35s late 8s, 35s probe 16s, 43s late 8s, 43s cut: peer is silent", patienceAfter: 1},
		{name: "bytes", liveness: limited, script: []step{{"5s", bytes}, {"12s", bytes}}, until: "21s", want: "20s probe 8s"},
		{name: "bytes after the second probe", liveness: limited, script: []step{{"20s", bytes}}, until: "29s",
			want: "8s probe 8s, 16s late 8s, 16s probe 16s, 24s late 8s, 28s probe 8s"},
		{name: "bytes after the second call of Probe", liveness: withProbe, script: []step{{"17500ms", bytes}}, until: "26s",
			want: "8s probe 8s, 8s done 0s, 16s probe 16s, 16s done 0s, 25.5s probe 8s, 25.5s done 0s"},
		{name: "bytes of which the connection tells nothing", liveness: limited, conn: &conntest.FakeOptions{Pings: true}, pong: time.Second,
			script: []step{{"5s", bytes}, {"12s", message}}, until: "20500ms", want: "8s probe 8s, 9s done 1s, 20s probe 8s"},
		{name: "nothing can be probed", liveness: limited, conn: &conntest.FakeOptions{Transport: true}, until: "1h"},
		{name: "nothing can be probed but by Probe", liveness: withProbe, conn: &conntest.FakeOptions{}, until: "10s",
			want: "8s probe 8s, 8s done 0s"},
		{name: "no limit", until: "1h"},
		{name: "the shortest limit", liveness: LivenessOptions{Limit: 1}, until: "1s", patienceAfter: 1,
			want: "1ns probe 1ns, 2ns late 1ns, 2ns probe 2ns, 3ns late 1ns, 3ns cut: peer is silent"},
		{name: "Shutdown", liveness: limited, script: []step{{"9s", leave}}, until: "1m", want: "8s probe 8s, 16s late 8s"},
	})
}

func TestTheHooksTakeNoTimeOfThePeer(t *testing.T) {
	play(t, []scene{
		{name: "silent", liveness: limited, hook: 2 * time.Second, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 18s late 10s, 18s probe 18s, 28s late 10s, 28s cut: peer is silent"},
		{name: "silent, with a Probe", liveness: withProbe, hook: 2 * time.Second, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 10s done 2s, 18s probe 18s, 20s done 2s, 28s cut: peer is silent"},
		{name: "bytes during a hook", liveness: withProbe, hook: 2 * time.Second, script: []step{{"8500ms", bytes}}, until: "17s",
			want: "8s probe 8s, 10s done 2s, 16.5s probe 8s"},
		{name: "Check", liveness: limited, hook: 2 * time.Second, script: []step{{"3s", check}}, until: "1m", patienceAfter: 1,
			want: "3s probe 3s, 10s late 7s, 10s cut: peer is silent"},
	})
}

func TestProbeEveryProbesAlsoAPeerThatIsHeard(t *testing.T) {
	every := LivenessOptions{Limit: 24 * time.Second, ProbeEvery: 5 * time.Second}
	everyProbe := LivenessOptions{Limit: 24 * time.Second, ProbeEvery: 5500 * time.Millisecond, Probe: asks} // not at a pulse
	play(t, []scene{
		{name: "answers", liveness: every, pong: time.Second, until: "16s",
			want: "5s probe 5s, 6s done 1s, 10s probe 4s, 11s done 1s, 15s probe 4s, 16s done 1s"},
		{name: "Check begins the interval anew", liveness: every, pong: time.Second, script: []step{{"3s", check}}, until: "10s",
			want: "3s probe 3s, 4s done 1s, 8s probe 4s, 9s done 1s"},
		{name: "silent", liveness: everyProbe, until: "1m", patienceAfter: 1,
			want: "5.5s probe 5.5s, 5.5s done 0s, 8s probe 8s, 8s done 0s, 13.5s probe 13.5s, 13.5s done 0s, 16s probe 16s, 16s done 0s, " +
				"21.5s probe 21.5s, 21.5s done 0s, 24s cut: peer is silent"},
		{name: "without a limit, and heard between",
			liveness: LivenessOptions{Probe: asks, ProbeEvery: 5 * time.Second},
			script:   []step{{"7s", bytes}}, until: "19s",
			want: "5s probe 5s, 5s done 0s, 10s probe 3s, 10s done 0s, 15s probe 8s, 15s done 0s"},
		{name: "without a limit", liveness: LivenessOptions{ProbeEvery: 5 * time.Second}, until: "16s",
			want: "5s probe 5s, 10s late 5s, 10s probe 10s, 15s late 5s, 15s probe 15s"},
		{name: "whoever reads", liveness: everyProbe, script: []step{{"3s", block("20s")}}, until: "24s",
			want: "5.5s probe 0s, 5.5s done 0s, 11s probe 0s, 11s done 0s, 16.5s probe 0s, 16.5s done 0s, 22s probe 0s, 22s done 0s"},
		{name: "while nobody reads, and no verdict comes of that", liveness: everyProbe, script: []step{{"3s", block("4s")}}, until: "20s",
			want: "5.5s probe 0s, 5.5s done 0s, 11s probe 5.5s, 11s done 0s, 13.5s probe 8s, 13.5s done 0s, 19s probe 13.5s, 19s done 0s"},
		{name: "not without a way", liveness: every, conn: &conntest.FakeOptions{Transport: true}, script: []step{{"3s", block("20s")}}, until: "1m"},
	})
}

func TestASuspendedMachineProbesAtOnceAndCutsAfterAThird(t *testing.T) {
	play(t, []scene{
		{name: "silent", liveness: limited, script: []step{{"3s", suspend}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s late 8s, 16s cut: peer is silent"},
		{name: "silent, with a Probe", liveness: withProbe, script: []step{{"3s", suspend}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 8s done 0s, 16s cut: peer is silent"},
		{name: "silent, and no limit", liveness: LivenessOptions{Probe: asks, ProbeEvery: 2 * time.Second},
			script: []step{{"3s", suspend}}, until: "1m",
			want: "2s probe 2s, 2s done 0s, 4s probe 4s, 4s done 0s, 6s probe 6s, 6s done 0s, 8s probe 8s, 8s done 0s, 9s cut: peer is silent"},
		{name: "heard before", liveness: withProbe, script: []step{{"3s", suspend}, {"5s", bytes}}, until: "14s",
			want: "8s probe 3s, 8s done 0s, 13s probe 8s, 13s done 0s"},
		{name: "heard", liveness: withProbe, script: []step{{"3s", suspend}, {"10500ms", bytes}}, until: "19s",
			want: "8s probe 8s, 8s done 0s, 18.5s probe 8s, 18.5s done 0s"},
		{name: "a step of the wall clock", liveness: limited, script: []step{{"3s", ahead(2 * time.Second)}, {"9s", ahead(2 * time.Second)}}, until: "17s",
			want: "8s probe 8s, 16s late 8s, 16s probe 16s"},
		{name: "a step back", liveness: limited, script: []step{{"3s", ahead(-time.Hour)}}, until: "17s", want: "8s probe 8s, 16s late 8s, 16s probe 16s"},
		{name: "more than 2 s", liveness: limited, script: []step{{"3s", ahead(2*time.Second + 1)}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 16s late 8s, 16s cut: peer is silent"},
		{name: "nobody reads", liveness: limited, script: []step{{"3s", handle("7s")}, {"5s", suspend}}, until: "25s",
			want: "16s probe 8s, 24s late 8s, 24s probe 16s"},
	})
}

// A look that is late by more than a pulse does not count, but for half a pulse: see stopped.
func TestTimeForWhichTheProcessWasStoppedIsNotThePeers(t *testing.T) {
	takes := LivenessOptions{Limit: 24 * time.Second, Probe: func(context.Context, func(conn.Message) error) error {
		time.Sleep(2500 * time.Millisecond)
		return nil
	}}
	play(t, []scene{
		{name: "before the first probe", liveness: limited, script: []step{{"3s", stop(30 * time.Second)}}, until: "1m", patienceAfter: 1,
			want: "38s probe 38s, 46s late 8s, 46s probe 46s, 54s late 8s, 54s cut: peer is silent"},
		{name: "after a Probe", liveness: withProbe, script: []step{{"11500ms", stop(30 * time.Second)}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 8s done 0s, 46.5s probe 46.5s, 46.5s done 0s, 54.5s cut: peer is silent"},
		{name: "for a pulse", liveness: withProbe, script: []step{{"11500ms", stop(time.Second)}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 8s done 0s, 16s probe 16s, 16s done 0s, 24s cut: peer is silent"},
		{name: "during a Probe", liveness: takes, script: []step{{"10200ms", stopProbe(5 * time.Second)}}, until: "21s",
			want: "8s probe 8s, 10.5s done 2.5s, 20.7s probe 20.7s"},
		{name: "during the Probe of a Check", liveness: takes, script: []step{{"3s", check}, {"4100ms", stopProbe(5 * time.Second)}}, until: "1m", patienceAfter: 1,
			want: "3s probe 3s, 5.5s done 2.5s, 8s probe 8s, 10.5s done 2.5s, 13.1625s cut: peer is silent"},
		{name: "during a probe", liveness: limited, script: []step{{"10200ms", stopProbe(5 * time.Second)}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 20.7s late 12.7s, 20.7s probe 20.7s, 28.7s late 8s, 28.7s cut: peer is silent"},
		{name: "during the probe of a Check", liveness: limited, script: []step{{"3s", check}, {"4100ms", stopProbe(5 * time.Second)}}, until: "1m", patienceAfter: 1,
			want: "3s probe 3s, 13.1625s late 10.1625s, 13.1625s cut: peer is silent"},
	})
}

func TestSilenceIsKnownFromStartOnIfSomethingTellsIt(t *testing.T) {
	tell := func(w *world) { w.note("%v %v", w.liveness.Silence(), w.liveness.Silent()) }
	script := []step{{"", func(*world) { time.Sleep(time.Second) }}, {"", tell},
		{"4s", bytes}, {"5s", tell}, {"6s", message}, {"8500ms", tell}, {"17900ms", tell}, {"18100ms", tell}}
	play(t, []scene{
		{name: "a Transport", liveness: limited, script: script, until: "19s", want: "0s false, 1s false, 2.5s false, 14s probe 8s, 11.9s false, 12.1s true"},
		{name: "messages", liveness: limited, conn: &conntest.FakeOptions{Pings: true}, script: script, until: "19s",
			want: "0s false, 5s false, 2.5s false, 14s probe 8s, 11.9s false, 12.1s true"},
		{name: "nothing can be probed", liveness: limited, conn: &conntest.FakeOptions{Transport: true}, script: script, until: "19s",
			want: "0s false, 1s false, 2.5s false, 11.9s false, 12.1s false"},
		{name: "nothing tells it", liveness: limited, conn: &conntest.FakeOptions{}, script: script, until: "19s",
			want: "0s false, 0s false, 0s false, 0s false, 0s false"},
		{name: "no limit", script: script, until: "19s",
			want: "0s false, 1s false, 2.5s false, 11.9s false, 12.1s false"},
		{name: "nobody reads", liveness: limited, script: append(script[:5:5], step{"7s", block("1m")}, step{"20s", tell}), until: "21s",
			want: "0s false, 1s false, 13s false"},
	})
}
