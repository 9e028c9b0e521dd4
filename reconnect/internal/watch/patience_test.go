package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect/internal/link"
)

// Every end of a session, from every patience.
func TestPatienceGrowsWithEachSilentSessionInARow(t *testing.T) {
	for _, test := range []struct {
		shown evidence
		next  [4]patience // from each patience
	}{
		{probedOnce | endedSilent, [4]patience{1, 2, 3, 3}},
		{probedOnce | outlastedLimit | endedSilent, [4]patience{1, 2, 3, 3}},
		{probedOnce | outlastedLimit, [4]patience{0, 1, 2, 3}}, // it would have been cut without patience
		{probedOnce, [4]patience{}},                            // the row has ended
		{endedSilent, [4]patience{}},                           // it was not probed
		{0, [4]patience{}},
	} {
		for p, next := range test.next {
			require.Equal(t, next, patience(p).ended(test.shown), "%b from %d", test.shown, p)
		}
	}
}

// wrap waits until an Instant in ms, in 32 bits, begins at 0 again.
var wrap = step{"", func(*world) { time.Sleep(time.Duration(-uint32(link.Now().Milliseconds())) * time.Millisecond) }}

// Two thirds of the first limit are 16 s. With a patience of 2 a third is 32 s.
func TestTheLimitLearnsFromASession(t *testing.T) {
	play(t, []scene{
		{name: "silent", liveness: limited, patience: 1, until: "1m", patienceAfter: 2,
			want: "0s probe 0s, 16s late 16s, 16s probe 16s, 32s late 16s, 32s probe 32s, 48s late 16s, 48s cut: peer is silent"},
		{name: "a quick answer", liveness: limited, patience: 2, pong: 16 * time.Second, until: "1m", patienceAfter: 1,
			want: "0s probe 0s, 16s done 16s, 24s probe 8s, 32s late 8s, 32s probe 16s, 40s late 8s, 40s cut: peer is silent"},
		{name: "a quick answer to the smallest patience", liveness: limited, patience: 1, pong: 5 * time.Second, until: "13s",
			want: "0s probe 0s, 5s done 5s, 13s probe 8s"},
		{name: "bytes are no answer to a ping", liveness: limited, patience: 2, script: []step{wrap, {"1s", bytes}}, until: "34s", patienceAfter: 2,
			want: "0s probe 0s, 32s late 32s, 33s probe 32s"},
		{name: "a late answer", liveness: limited, patience: 2, pong: 16001 * time.Millisecond, until: "49s", patienceAfter: 2,
			want: "0s probe 0s, 16.001s done 16.001s, 48.001s probe 32s"},
		{name: "a late answer, and never silent for the limit", liveness: limited, patience: 2, pong: 16001 * time.Millisecond, until: "20s",
			want: "0s probe 0s, 16.001s done 16.001s"},
		{name: "silent for the limit", liveness: withProbe, patience: 2, script: []step{{"24500ms", bytes}}, until: "30s", patienceAfter: 2,
			want: "0s probe 0s, 0s done 0s"},
		{name: "quick bytes after a Probe", liveness: withProbe, patience: 2, script: []step{{"15500ms", bytes}}, until: "24s",
			want: "0s probe 0s, 0s done 0s, 23.5s probe 8s, 23.5s done 0s"},
		{name: "late bytes after a Probe", liveness: withProbe, patience: 2, script: []step{{"17s", bytes}}, until: "50s", patienceAfter: 2,
			want: "0s probe 0s, 0s done 0s, 49s probe 32s, 49s done 0s"},
		{name: "bytes after the first Probe and a later one", liveness: withProbe, patience: 2, script: []step{{"41500ms", bytes}}, until: "74s", patienceAfter: 2,
			want: "0s probe 0s, 0s done 0s, 32s probe 32s, 32s done 0s, 1m13.5s probe 32s, 1m13.5s done 0s"},
		{name: "quick bytes after late ones", liveness: withProbe, patience: 2, script: []step{{"17s", bytes}, {"51s", bytes}}, until: "1m",
			want: "0s probe 0s, 0s done 0s, 49s probe 32s, 49s done 0s, 59s probe 8s, 59s done 0s"},
		{name: "not probed", liveness: limited, patience: 2, script: []step{{"", block("1m")}}, until: "20s"},
		{name: "another end", liveness: limited, until: "9s", want: "8s probe 8s"},
	})
}
