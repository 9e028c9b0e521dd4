//go:build linux

package recipes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/interop/internal/server"
)

// startCSMS starts the CSMS of ocpp-rpc, which writes the events to a log.
func startCSMS(t *testing.T, log string) *server.Server {
	node := server.Find(t, "node", "/usr/bin/node")
	if _, err := os.Stat("ocpp/node_modules/ocpp-rpc"); err != nil {
		t.Skip("ocpp-rpc is not installed: run npm ci in bench/interop/recipes/ocpp")
	}
	s := server.New(t, func(port string) *exec.Cmd { return exec.Command(node, "ocpp/server.mjs", port, log) })
	s.Start()
	return s
}

// transactionEvent returns the payload of an event of a transaction that has ten of them.
func transactionEvent(i int) string {
	kind, trigger := "Updated", "MeterValuePeriodic"
	switch i % 10 {
	case 0:
		kind, trigger = "Started", "CablePluggedIn"
	case 9:
		kind, trigger = "Ended", "EVDeparted"
	}
	return fmt.Sprintf(`{"eventType":%q,"timestamp":"2026-01-01T00:00:00Z","triggerReason":%q,"seqNo":%d,"transactionInfo":{"transactionId":"t%d"}}`,
		kind, trigger, i%10, i/10)
}

// The CSMS and the station are killed three times each. Every event of which the station has said that it is stored
// comes, in order, one at a time. An event may come twice for each kill, of the CSMS or of the station; an event
// that the station has not stored before a kill is given to the station again.
func TestOCPP(t *testing.T) {
	const events, kills = 300, 6
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	csms := startCSMS(t, log)
	p := pipe(t, "ocpp", "-url", "ws://"+csms.Address+"/station-1", "-store", filepath.Join(dir, "store"), "-wait", "100ms", "-random", "100ms")
	stored := func() int { return len(p.lines()) }
	logged := func(prefix string) (list []string) {
		for _, line := range linesOf(t, log) {
			if strings.HasPrefix(line, prefix) {
				list = append(list, line)
			}
		}
		return list
	}
	for kill := range kills {
		until := events / kills * (kill + 1)
		var lines []string
		for i := stored(); i < until; i++ {
			lines = append(lines, transactionEvent(i))
		}
		p.feed(lines...)
		if kill%2 == 0 {
			before := len(logged("event"))
			eventually(t, "ten events more", func() bool { return len(logged("event")) >= before+10 })
			csms.Kill()
			eventually(t, "the events are stored while there is no CSMS", func() bool { return stored() == until })
			csms.Start()
		} else {
			eventually(t, "half of the events are stored", func() bool { return stored() >= until-events/kills/2 })
			p.kill()
			p.start()
		}
	}
	var lines, sent []string
	for i := stored(); i < events; i++ {
		lines = append(lines, transactionEvent(i))
	}
	if len(lines) > 0 {
		p.feed(lines...)
	}
	for i := range events {
		sent = append(sent, fmt.Sprintf("event t%d %d", i/10, i%10))
	}
	eventually(t, "all events come", func() bool { lost, _ := tally(logged("event"), sent); return len(lost) == 0 })
	lost, doubled := tally(logged("event"), sent)
	t.Logf("%d events over %d kills: lost %v, doubled %v; %d CALLs of the CSMS", events, kills, lost, doubled, len(logged("answer NotImplemented")))
	require.LessOrEqual(t, len(doubled), kills+kills/2)
	require.Empty(t, logged("invalid"))
	require.NotEmpty(t, logged("answer NotImplemented"))
	var first []string // without what came again
	for _, line := range logged("event") {
		if !slices.Contains(first, line) {
			first = append(first, line)
		}
	}
	require.Equal(t, sent, first, "an event is sent when the one before has its answer")
}
