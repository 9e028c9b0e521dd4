package watch

import (
	"testing"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

func TestThereIsNoVerdictWhileAHandlerRunsAndASlowOneIsReportedOnce(t *testing.T) {
	play(t, []scene{
		{name: "slow", liveness: limited, script: []step{{"3s", handle("40s")}}, until: "57s",
			want: "11s slow OnMessage 8s, 19s overdue OnMessage 16s, 35s overdue OnMessage 32s, " +
				"48s probe 8s, 56s late 8s, 56s probe 16s"},
		{name: "two, slow together", liveness: limited,
			script: []step{{"3s", handle("10s")}, {"3s", handle("10s")}}, until: "25s",
			want: "11s slow OnMessage 8s, 24s probe 8s"},
		{name: "two, both slow", liveness: limited,
			script: []step{{"3s", handle("15s")}, {"3s", handle("15s")}}, until: "41s",
			want: "11s slow OnMessage 8s, 27s slow OnMessage 8s, 40s probe 8s"},
		{name: "a probe before", liveness: withProbe, script: []step{{"10500ms", handle("40s")}}, until: "1m",
			want: "8s probe 8s, 8s done 0s, 18.5s slow OnMessage 8s, 26.5s overdue OnMessage 16s, " +
				"42.5s overdue OnMessage 32s, 51s probe 8s, 51s done 0s, 59s probe 16s, 59s done 0s"},
		{name: "not slow, and two Checks", liveness: limited, script: []step{{"3s", handle("3s")}, {"4s", check}, {"5s", check}}, until: "7s"},
		{name: "slow, and two Checks", liveness: limited,
			script: []step{{"3s", handle("13s")}, {"4s", check}, {"14s", check}}, until: "15s",
			want: "11s slow OnMessage 8s"},
		{name: "not slow, with ProbeEvery", liveness: LivenessOptions{Limit: 24 * time.Second, Probe: asks, ProbeEvery: 2 * time.Second}, script: []step{{"3s", handle("5500ms")}},
			until: "9s", want: "2s probe 2s, 2s done 0s, 4s probe 0s, 4s done 0s, 6s probe 0s, 6s done 0s, 8s probe 0s, 8s done 0s"},
		{name: "slow, with ProbeEvery", liveness: LivenessOptions{Limit: 30 * time.Second, Probe: asks, ProbeEvery: 9 * time.Second},
			script: []step{{"8500ms", handle("17s")}}, until: "25s",
			want: "9s probe 0s, 9s done 0s, 18s probe 0s, 18s done 0s, 18.5s slow OnMessage 10s"},
		{name: "slow, and a Check", liveness: limited,
			script: []step{{"3s", handle("16s")}, {"15s", check}}, until: "17s",
			want: "11s slow OnMessage 8s"},
		{name: "slow, with a long ProbeEvery and no limit",
			liveness: LivenessOptions{Probe: asks, ProbeEvery: time.Hour},
			script:   []step{{"1s", handle("10m")}, {"2s", check}}, until: "1m",
			want: "6s slow OnMessage 5s, 11s overdue OnMessage 10s, 21s overdue OnMessage 20s, " +
				"41s overdue OnMessage 40s"},
		{name: "slow, with no limit",
			script: []step{{"1s", handle("20s")}, {"2s", check}, {"5s", check}, {"7s", check}, {"9s", check}},
			until:  "10s", want: "6s slow OnMessage 5s"},
		{name: "slow, with a grown limit", liveness: limited, patience: 1,
			script: []step{{"", handle("10s")}}, until: "9s",
			want: "8s slow OnMessage 8s"},
		{name: "a Check before", liveness: withProbe, script: []step{{"3s", check}, {"4500ms", handle("6s")}}, until: "20s",
			want: "3s probe 3s, 3s done 0s, 13s probe 8s, 13s done 0s"},
	})
}

func TestAFullInboxThatNobodyReadsIsOverdueAndOnlyAHangUpEndsTheSession(t *testing.T) {
	const overdue = "32s overdue reader 24s, 56s overdue reader 48s, 1m44s overdue reader 1m36s"
	const hungUp = "cut: the peer hung up, and nobody has read what came before: EOF"
	play(t, []scene{
		{name: "for long", liveness: limited, script: []step{{"3s", block("110s")}}, until: "114s", want: overdue},
		{name: "nothing can be probed", liveness: limited, conn: &conntest.FakeOptions{Transport: true},
			script: []step{{"", blocked}, {"3s", block("33s")}}, until: "10m",
			want: "35s overdue reader 24s"},
		{name: "no Transport", liveness: limited, conn: &conntest.FakeOptions{Pings: true}, script: []step{{"3s", block("30s")}}, until: "34s",
			want: "32s overdue reader 24s"},
		{name: "no limit", liveness: LivenessOptions{ProbeEvery: time.Hour},
			script: []step{{"3s", block("200h")}, {"5s", check}, {"1h", hangUp}}, until: "90m",
			want: "1h0m0s probe 0s"},
		{name: "hung up", liveness: limited, script: []step{{"3s", block("110s")}, {"33s", hangUp}}, until: "1h",
			want: "32s overdue reader 24s, 40s " + hungUp},
		{name: "hung up at first", liveness: limited, script: []step{{"3s", block("110s")}, {"9s", hangUp}}, until: "1h",
			want: "32s overdue reader 24s, 32s " + hungUp},
	})
}

// blocked is a call of Blocked before Start.
func blocked(w *world) { w.liveness.Blocked() }

func TestThereIsNoTimerThatNobodyNeeds(t *testing.T) {
	ticks := step{"100s", func(w *world) { w.note("%d ticks", w.ticks.Load()) }}
	nothing := &conntest.FakeOptions{Transport: true}
	play(t, []scene{
		{name: "nothing can be probed", liveness: limited, conn: nothing, script: []step{ticks}, until: "101s", want: "0 ticks"},
		{name: "nothing can be probed, and no limit", conn: nothing, script: []step{{"3s", block("1h")}, ticks},
			until: "101s",
			want:  "0 ticks"},
		{name: "no limit, and a Check was answered", pong: time.Second, script: []step{{"5s", check}, ticks},
			until: "101s",
			want:  "5s probe 5s, 6s done 1s, 2 ticks"},
		{name: "no limit, and nobody reads", script: []step{{"3s", block("1h")}, {"5s", check}, ticks}, until: "101s",
			want: "2 ticks"},
	})
}
