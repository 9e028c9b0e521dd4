package debug

import (
	"fmt"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

// eventInfo is the record event of the JSON.
type eventInfo struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Session uint64    `json:"session,omitzero"`
	Try     int       `json:"try,omitzero"`
	Took    seconds   `json:"took,omitzero"`
	Reason  string    `json:"reason,omitempty"`
	Verdict string    `json:"verdict,omitempty"`
	Count   int       `json:"count,omitzero"`
	Text    string    `json:"text"`
}

// kind is the kind of an event.
type kind uint8

const (
	gateStart kind = iota
	gateDone
	gateFailed
	dialStart
	dialDone
	dialFailed
	dialHung
	addressIgnored
	sessionStart
	sessionReady
	sessionDone
	rotateStart
	rotateDone
	rotateFailed
	wait
	kicked
	probeDone
	probeFailed
	slowHandler
	overdue
	ended
)

var kinds = [...]string{
	"gate_start", "gate_done", "gate_failed", "dial_start", "dial_done", "dial_failed", "dial_hung", "address_ignored", "session_start",
	"session_ready", "session_done", "rotate_start", "rotate_done", "rotate_failed", "wait", "kicked", "probe_done", "probe_failed",
	"slow_handler", "overdue", "end",
}

func (k kind) String() string { return kinds[k] }

// event is an eventInfo as the Page keeps it.
type event struct {
	at      int64         // Unix nanoseconds
	took    time.Duration // eventInfo.Took
	more    time.Duration // of a wait: the part that the server asked for; of sessionDone: for how long it was ready; of sessionStart: the downtime
	session uint64
	text    string // of the cause; of overdue: the function
	try     uint32
	count   uint32 // 0 stands for 1
	kind    kind
	reason  backoff.Reason
	class   backoff.Class
	failed  bool // there is a reason
}

// public returns e as it is shown.
func (e *event) public() eventInfo {
	r := eventInfo{
		Time: time.Unix(0, e.at), Kind: e.kind.String(), Session: e.session, Try: int(e.try), Took: seconds(e.took), Count: int(e.count),
		Text: e.sentence(),
	}
	if e.failed {
		r.Reason = e.reason.String()
	}
	if e.kind == wait {
		r.Verdict = e.class.String()
	}
	return r
}

// sentence returns e for people.
func (e *event) sentence() string {
	took, more := seconds(e.took), seconds(e.more)
	switch e.kind {
	case gateStart:
		return "waits at the gate"
	case gateDone:
		return fmt.Sprintf("let through the gate after %v", took)
	case gateFailed:
		return fmt.Sprintf("not let through the gate after %v: %s", took, e.text)
	case dialStart:
		return fmt.Sprintf("try %d begins, limit %v", e.try, took)
	case dialDone:
		return fmt.Sprintf("try %d is connected after %v", e.try, took)
	case dialFailed:
		return fmt.Sprintf("try %d has failed after %v: %s", e.try, took, e.text)
	case dialHung:
		return fmt.Sprintf("try %d was not answered for %v: it is kept, and another one begins", e.try, took)
	case addressIgnored:
		return "the address that the server advised was not followed: " + e.text
	case sessionStart:
		if e.more > 0 {
			return fmt.Sprintf("session %d begins, %v after the loss", e.session, more)
		}
		return fmt.Sprintf("session %d begins", e.session)
	case sessionReady:
		return fmt.Sprintf("session %d is ready", e.session)
	case sessionDone:
		if e.more == 0 {
			return fmt.Sprintf("session %d was never ready and has ended: %s", e.session, e.text)
		}
		return fmt.Sprintf("session %d has ended, ready for %v: %s", e.session, more, e.text)
	case rotateStart:
		return fmt.Sprintf("session %d is to be replaced: %s", e.session, e.text)
	case rotateDone:
		return fmt.Sprintf("session %d was replaced within %v", e.session, took)
	case rotateFailed:
		return fmt.Sprintf("session %d was not replaced: %s", e.session, e.text)
	case wait:
		return e.waitSentence()
	case kicked:
		return fmt.Sprintf("the wait was cut short after %v", took)
	case probeDone:
		if e.count > 1 {
			return fmt.Sprintf("%s probes were answered, the last after %v", number(int(e.count)), took)
		}
		return fmt.Sprintf("a probe was answered after %v", took)
	case probeFailed:
		return fmt.Sprintf("a probe has failed after %v: %s", took, e.text)
	case slowHandler:
		return fmt.Sprintf("OnMessage has run for %v", took)
	case overdue:
		return fmt.Sprintf("%s is overdue by %v", e.text, took)
	}
	return "it has ended: " + e.text
}

func (e *event) waitSentence() string {
	text := fmt.Sprintf("waits for %v before try %d", seconds(e.took), e.try)
	if e.more > 0 {
		text += fmt.Sprintf(", %v of it because the server asked for that", seconds(e.more))
	}
	if e.class != backoff.ClassOK {
		text += fmt.Sprintf(" (verdict: %v)", e.class)
	}
	return text
}
