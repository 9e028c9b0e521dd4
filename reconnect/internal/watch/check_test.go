package watch

import (
	"net"
	"testing"
	"time"

	"github.com/redial-go/redial/conn/conntest"
)

// checkBefore is a Check before Start.
var checkBefore = step{"", func(w *world) { w.liveness.Check(); time.Sleep(time.Second) }}

func TestCheckProbesAtOnceAndCutsAfterFiveSecondsOrAThird(t *testing.T) {
	play(t, []scene{
		{name: "silent", liveness: limited, script: []step{{"3s", check}}, until: "1m", patienceAfter: 1,
			want: "3s probe 3s, 8s late 5s, 8s cut: peer is silent"},
		{name: "silent, with a Probe", liveness: withProbe, script: []step{{"3s", check}}, until: "1m", patienceAfter: 1,
			want: "3s probe 3s, 3s done 0s, 8s cut: peer is silent"},
		{name: "a short limit", liveness: LivenessOptions{Limit: 6 * time.Second}, script: []step{{"1s", check}}, until: "1m", patienceAfter: 1,
			want: "1s probe 1s, 3s late 2s, 3s cut: peer is silent"},
		{name: "answers", liveness: limited, pong: 4 * time.Second, script: []step{{"3s", check}}, until: "15s",
			want: "3s probe 3s, 7s done 4s, 15s probe 8s"},
		{name: "bytes", liveness: limited, script: []step{{"3s", check}, {"5s", bytes}}, until: "13s",
			want: "3s probe 3s, 8s late 5s, 13s probe 8s"},
		{name: "bytes after a Probe", liveness: withProbe, script: []step{{"3s", check}, {"6200ms", bytes}}, until: "15s",
			want: "3s probe 3s, 3s done 0s, 14.2s probe 8s, 14.2s done 0s"},
		{name: "before Start", liveness: limited, script: []step{checkBefore}, until: "1m", patienceAfter: 1,
			want: "0s probe 0s, 5s late 5s, 5s cut: peer is silent"},
		{name: "nothing can be probed", liveness: limited, conn: &conntest.FakeOptions{}, script: []step{{"3s", check}}, until: "1m"},
		{name: "nobody reads", liveness: limited, script: []step{{"3s", handle("9500ms")}, {"5s", check}}, until: "14s",
			want: "11s slow OnMessage 8s, 13s probe 8s"},
		{name: "while a hook runs, and the inbox has room again", liveness: limited, hook: 4 * time.Second,
			script: []step{{"3s", block("30500ms")}, {"34s", check}}, until: "39s",
			want: "32s overdue reader 24s, 36s probe 4s"},
		{name: "while a hook runs, and ProbeEvery is due", hook: 4 * time.Second,
			liveness: LivenessOptions{Limit: time.Minute, Probe: asks, ProbeEvery: 50 * time.Second},
			script:   []step{{"", block("10m")}, {"81s", check}}, until: "90s",
			want: "50s probe 0s, 54s done 4s, 1m21s overdue reader 1m1s"},
		{name: "while a hook runs before the probe of ProbeEvery, which gives way", hook: 4 * time.Second,
			liveness: LivenessOptions{Limit: 24 * time.Second, Probe: asks, ProbeEvery: 16 * time.Second},
			script:   []step{{"", block("10m")}, {"34s", check}}, until: "41s",
			want: "16s probe 0s, 20s done 4s, 32s overdue reader 24s, 36s probe 0s, 40s done 4s"},
	})
}

func TestCheckNeedsNoLimit(t *testing.T) {
	play(t, []scene{
		{name: "silent", script: []step{{"3s", check}}, until: "1m",
			want: "3s probe 3s, 8s late 5s, 8s cut: peer is silent"},
		{name: "answers", pong: time.Second, script: []step{{"3s", check}, {"1h", check}}, until: "2h",
			want: "3s probe 3s, 4s done 1s, 1h0m0s probe 59m56s, 1h0m1s done 1s"},
		{name: "before Start", script: []step{checkBefore}, until: "1m",
			want: "0s probe 0s, 5s late 5s, 5s cut: peer is silent"},
		{name: "ProbeEvery", liveness: LivenessOptions{ProbeEvery: 20 * time.Second}, script: []step{{"3s", check}},
			until: "1m",
			want:  "3s probe 3s, 8s late 5s, 8s cut: peer is silent"},
		{name: "a short ProbeEvery", liveness: LivenessOptions{Probe: asks, ProbeEvery: 2 * time.Second},
			script: []step{{"3500ms", check}}, until: "1m",
			want: "2s probe 2s, 2s done 0s, 3.5s probe 3.5s, 3.5s done 0s, 5.5s probe 5.5s, 5.5s done 0s, 7.5s probe 7.5s, 7.5s done 0s, 8.5s cut: peer is silent"},
	})
}

func TestCheckDuringAProbe(t *testing.T) {
	play(t, []scene{
		{name: "takes its place", liveness: limited, script: []step{{"10s", check}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 10s canceled 2s, 10s probe 10s, 15s late 5s, 15s cut: peer is silent"},
		{name: "waits for one that takes no longer", liveness: LivenessOptions{Limit: 15 * time.Second}, script: []step{{"6s", check}}, until: "1m", patienceAfter: 1,
			want: "5s probe 5s, 10s late 5s, 10s probe 10s, 15s late 5s, 15s cut: peer is silent"},
		{name: "needs none if that is answered", liveness: limited, pong: 4 * time.Second, script: []step{{"3s", check}, {"5s", check}}, until: "15s",
			want: "3s probe 3s, 7s done 4s, 15s probe 8s"},
	})
}

func TestALocalAddressThatIsGoneEndsTheSessionAtTheNextCheck(t *testing.T) {
	at := func(ip ...byte) *special { return &special{local: &net.TCPAddr{IP: net.IP(ip)}} }
	const gone = "cut: the local address of the connection is gone"
	play(t, []scene{
		{name: "gone", liveness: limited, special: at(192, 0, 2, 1), script: []step{{"3s", check}}, until: "1m", want: "3s " + gone},
		{name: "gone while nobody reads", liveness: limited, special: at(192, 0, 2, 1), script: []step{{"2s", handle("1m")}, {"3s", check}}, until: "1m",
			want: "3s " + gone},
		{name: "gone after a suspension", liveness: limited, special: at(192, 0, 2, 1), script: []step{{"3s", suspend}}, until: "1m", want: "8s " + gone},
		{name: "nobody asks", liveness: limited, special: at(192, 0, 2, 1), until: "9s", want: "8s probe 8s"},
		{name: "loopback", liveness: limited, special: at(127, 9, 9, 9), script: []step{{"3s", check}}, until: "4s", want: "3s probe 3s"},
		{name: "no TCP", liveness: limited, special: &special{local: &net.UnixAddr{}}, script: []step{{"3s", check}}, until: "4s", want: "3s probe 3s"},
		{name: "no network", liveness: limited, conn: &conntest.FakeOptions{Pings: true}, script: []step{{"3s", check}}, until: "4s", want: "3s probe 3s"},
	})
}
