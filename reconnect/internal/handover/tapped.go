package handover

import (
	"fmt"
	"strings"
)

// Tapped is a [Machine] whose steps a test can see: the methods that a supervisor calls, with their answers.
type Tapped struct{ Machine }

// Tap gets each step of each Tapped, while a lock is held. Only a test sets Tap, before there is a Tapped. Nil: no
// step is kept, and a call costs one comparison more than that of the Machine.
var Tap func(Step)

// Step is one call of a method of a [Machine].
type Step struct {
	Before Machine
	Call   string
	Args   [2]uint8 // 0 for false, 1 for true
	Answer uint8
	After  Machine
}

// String returns s as a line of a table.
func (s Step) String() string {
	return bits.Replace(fmt.Sprintf("%v %s %v = %d %v", s.Before, s.Call, s.Args, s.Answer, s.After))
}

var bits = strings.NewReplacer("false", "-", "true", "+")

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Begin is [Machine.Begin].
func (t *Tapped) Begin(ending bool) Begin {
	before := t.Machine
	answer := t.Machine.Begin(ending)
	if Tap != nil {
		Tap(Step{before, "Begin", [2]uint8{bit(ending)}, uint8(answer), t.Machine})
	}
	return answer
}

// NextReady is [Machine.NextReady].
func (t *Tapped) NextReady(resumed, behind bool) Lead {
	before := t.Machine
	answer := t.Machine.NextReady(resumed, behind)
	if Tap != nil {
		Tap(Step{before, "NextReady", [2]uint8{bit(resumed), bit(behind)}, uint8(answer), t.Machine})
	}
	return answer
}

// Holds is [Machine.Holds].
func (t *Tapped) Holds() bool {
	answer := t.Machine.Holds()
	if Tap != nil {
		Tap(Step{t.Machine, "Holds", [2]uint8{}, bit(answer), t.Machine})
	}
	return answer
}

// HeldFull is [Machine.HeldFull].
func (t *Tapped) HeldFull() (cut bool) {
	before := t.Machine
	cut = t.Machine.HeldFull()
	if Tap != nil {
		Tap(Step{before, "HeldFull", [2]uint8{}, bit(cut), t.Machine})
	}
	return cut
}

// OldLost is [Machine.OldLost].
func (t *Tapped) OldLost(how Ending, unread bool) (overlapped bool) {
	before := t.Machine
	overlapped = t.Machine.OldLost(how, unread)
	if Tap != nil {
		Tap(Step{before, "OldLost", [2]uint8{uint8(how), bit(unread)}, bit(overlapped), t.Machine})
	}
	return overlapped
}

// Release is [Machine.Release].
func (t *Tapped) Release(left int) (done bool) {
	before := t.Machine
	done = t.Machine.Release(left)
	if Tap != nil {
		Tap(Step{before, "Release", [2]uint8{bit(left > 0)}, bit(done), t.Machine})
	}
	return done
}

// NextLost is [Machine.NextLost].
func (t *Tapped) NextLost(ready bool) Loss {
	before := t.Machine
	answer := t.Machine.NextLost(ready)
	if Tap != nil {
		Tap(Step{before, "NextLost", [2]uint8{bit(ready)}, uint8(answer), t.Machine})
	}
	return answer
}

// OldEnded is [Machine.OldEnded].
func (t *Tapped) OldEnded(stop bool) Heir {
	before := t.Machine
	answer := t.Machine.OldEnded(stop)
	if Tap != nil {
		Tap(Step{before, "OldEnded", [2]uint8{bit(stop)}, uint8(answer), t.Machine})
	}
	return answer
}

// Bridged is [Machine.Bridged].
func (t *Tapped) Bridged() (ends bool) {
	before := t.Machine
	ends = t.Machine.Bridged()
	if Tap != nil {
		Tap(Step{before, "Bridged", [2]uint8{}, bit(ends), t.Machine})
	}
	return ends
}

// OldDone is [Machine.OldDone].
func (t *Tapped) OldDone() OldDone {
	before := t.Machine
	answer := t.Machine.OldDone()
	if Tap != nil {
		Tap(Step{before, "OldDone", [2]uint8{}, uint8(answer), t.Machine})
	}
	return answer
}

// NextDone is [Machine.NextDone].
func (t *Tapped) NextDone() (leads bool) {
	before := t.Machine
	leads = t.Machine.NextDone()
	if Tap != nil {
		Tap(Step{before, "NextDone", [2]uint8{}, bit(leads), t.Machine})
	}
	return leads
}

// Planned is [Machine.Planned].
func (t *Tapped) Planned() bool {
	answer := t.Machine.Planned()
	if Tap != nil {
		Tap(Step{t.Machine, "Planned", [2]uint8{}, bit(answer), t.Machine})
	}
	return answer
}
