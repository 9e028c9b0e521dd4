package watch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redial-go/redial/conn"
)

// Redial cuts a silent peer at once. A limit that has grown does not change when that is.
func TestAPeerIsSilentAfterHalfOfTheFirstLimit(t *testing.T) {
	silent := func(w *world) { w.note("%v", w.liveness.Silent()) }
	for p, probe := range [mostPatience + 1]string{"8s probe 8s", "0s probe 0s", "0s probe 0s", "0s probe 0s"} {
		play(t, []scene{{name: fmt.Sprint(p), liveness: limited, patience: p, script: []step{{"11999999999ns", silent}, {"12s", silent}}, until: "13s",
			want: probe + ", false, true"}})
	}
}

// A session that begins with messages learns from its peer all the same, when they are handled.
func TestASessionThatIsBusyAtFirstLearnsSoonAfterwards(t *testing.T) {
	play(t, []scene{
		{name: "not for long", liveness: limited, patience: 3, script: []step{{"", block("1ms")}}, until: "2s", want: "1s probe 1s"},
		{name: "for long", liveness: limited, patience: 3, script: []step{{"", block("20001ms")}}, until: "22s", want: "21s probe 1s"},
	})
}

// The session may end at the instant of a Check.
func TestALostLinkIsNotProbed(t *testing.T) {
	play(t, []scene{{name: "Check", liveness: limited, script: []step{{"1s", cut}, {"1s", check}}, until: "1m", want: "1s cut: use of closed network connection"}})
}

// When a probe after a suspension has no answer in time, the link is cut, whatever began to probe meanwhile.
func TestALaterProbeGivesNoMoreTime(t *testing.T) {
	later := func(ctx context.Context, _ func(conn.Message) error) error { // the second call waits
		if clock(time.Now()) > 10*time.Second {
			<-ctx.Done()
		}
		return nil
	}
	play(t, []scene{
		{name: "Check", liveness: limited, script: []step{{"3s", suspend}, {"14s", check}}, until: "1m", patienceAfter: 1,
			want: "8s probe 8s, 14s canceled 6s, 14s probe 14s, 16s late 2s, 16s cut: peer is silent"},
		{name: "another suspension", liveness: LivenessOptions{Limit: 24 * time.Second, Probe: later},
			script: []step{{"3s", suspend}, {"14400ms", suspend}}, until: "1m",
			want: "8s probe 8s, 8s done 0s, 15s probe 15s, 16s done 1s, 16s cut: peer is silent", patienceAfter: 1},
	})
}

// The process is stopped for 2 s before the look at 5 s. The deadline, which was at 6 s, moves by the time since the middle of the
// pulse before that look.
func TestTheDeadlineOfACheckIsLaterIfTheProcessWasStopped(t *testing.T) {
	play(t, []scene{{name: "stopped", liveness: withProbe, script: []step{{"1s", check}, {"4500ms", stop(2 * time.Second)}}, until: "1m", patienceAfter: 1,
		want: "1s probe 1s, 1s done 0s, 8s probe 8s, 8s done 0s, 8.5s cut: peer is silent"}})
}
