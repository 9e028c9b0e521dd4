package history

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redial-go/redial/reconnect/internal/handover"
)

// handoverTable has each change of a handover.Machine that the walk in its package has checked, one a line. That
// package's TestTheTableHasTheChangesOfTheWalk writes the file.
//
//go:embed testdata/handover.txt
var handoverTable string

// handovers are the handovers of a history. Each change between two looks, under the lock of the two
// supervisors, is compared with those of the walk. So a supervisor makes one step at a time, and none that is
// not in the walk.
type handovers struct {
	mu    sync.Mutex // guards what follows; nothing else is locked under it
	last  map[*handover.Machine]handover.Machine
	wrong []string
	table map[string]bool
}

var tappedHandovers handovers

func init() { handover.Tap = tappedHandovers.look }

// look is called when a machine may have changed.
func (h *handovers) look(m *handover.Machine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.table == nil {
		h.table = make(map[string]bool)
		for line := range strings.Lines(handoverTable) {
			h.table[strings.TrimSpace(line)] = true
		}
	}
	if h.last == nil {
		h.last = make(map[*handover.Machine]handover.Machine)
	}
	before := []handover.Machine{
		handover.New(handover.Hold), handover.New(handover.Mix), handover.New(handover.BreakFirst),
	}
	if last, known := h.last[m]; known {
		before = []handover.Machine{last}
	}
	h.last[m] = *m
	known := func(b handover.Machine) bool { return b == *m || h.table[fmt.Sprint(b, *m)] }
	if !slices.ContainsFunc(before, known) && len(h.wrong) < 3 {
		h.wrong = append(h.wrong, fmt.Sprint(before, *m))
	}
}

// take returns what has happened since the last call.
func (h *handovers) take() (looked bool, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	looked, wrong = len(h.last) > 0, h.wrong
	h.last, h.wrong = nil, nil
	return looked, wrong
}

// finishHandovers checks the changes of all handovers. The caller holds w.mu.
func (w *world) finishHandovers() {
	if looked, wrong := tappedHandovers.take(); looked {
		w.check(HandoverAccepts, len(wrong) == 0, "the walk of a handover has not: %q", wrong)
	}
}
