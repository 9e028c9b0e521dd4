package history

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/handover"
)

// handoverTable has each step of a handover.Machine that the walk in its package has checked, one a line. That
// package's TestTheTableHasTheStepsOfTheWalk writes the file.
//
//go:embed testdata/handover.txt
var handoverTable string

// handovers are the steps of the handovers of a history, compared with those of the walk: each call, what the machine
// was before it, its arguments, its answer and what the machine is then. So the supervisors of package reconnect ask what
// those of the walk ask, and no more, and the machine answers what was proven.
type handovers struct {
	mu    sync.Mutex // guards what follows; nothing else is locked under it
	steps int
	wrong []string
	known map[handover.Step]bool // of all histories: whether the walk has the step
	table map[string]bool
}

var tappedHandovers = handovers{known: make(map[handover.Step]bool)}

func init() { handover.Tap = tappedHandovers.step }

// step is called with each step.
func (h *handovers) step(s handover.Step) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.steps++
	ok, seen := h.known[s]
	if !seen {
		if h.table == nil {
			h.table = make(map[string]bool)
			for line := range strings.Lines(handoverTable) {
				h.table[strings.TrimSpace(line)] = true
			}
		}
		ok = h.table[s.String()]
		h.known[s] = ok
	}
	if !ok && len(h.wrong) < 3 {
		h.wrong = append(h.wrong, s.String())
	}
}

// take returns what has happened since the last call.
func (h *handovers) take() (steps int, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	steps, wrong = h.steps, h.wrong
	h.steps, h.wrong = 0, nil
	return steps, wrong
}

// finishHandovers checks the steps of all handovers. The caller holds w.mu.
func (w *world) finishHandovers() {
	if steps, wrong := tappedHandovers.take(); steps > 0 {
		w.check(HandoverAccepts, len(wrong) == 0, "the walk of a handover has not: %q", wrong)
	}
}
