package debug

import (
	"fmt"
	"strings"
	"time"

	"github.com/redial-go/redial/reconnect/backoff"
)

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

// event is an eventInfo as the Page keeps it.
type event struct {
	at         int64 // Unix nanoseconds
	kind       *kind
	took, more time.Duration
	session    uint64
	cause      *causeInfo // nil: none. Of overdue: the function
	try, count uint32
	class      backoff.Class // of a wait
}

// kind is a kind of events: its name in the JSON and its sentence for people, in which the words in
// braces stand for fields of the event. Some names have several sentences.
type kind struct{ name, text string }

var (
	gateStart      = &kind{"gate_start", "waits at the gate"}
	gateDone       = &kind{"gate_done", "let through the gate after {took}"}
	gateFailed     = &kind{"gate_failed", "not let through the gate after {took}: {cause}"}
	dialStart      = &kind{"dial_start", "try {try} begins, limit {took}"}
	dialDone       = &kind{"dial_done", "try {try} is connected after {took}"}
	dialFailed     = &kind{"dial_failed", "try {try} has failed after {took}: {cause}"}
	dialHung       = &kind{"dial_hung", "try {try} was not answered for {took}: it is kept, and another one begins"}
	addressIgnored = &kind{"address_ignored", "the address that the server advised was not followed: {cause}"}
	sessionStart   = &kind{"session_start", "session {session} begins"}
	sessionBack    = &kind{"session_start", "session {session} begins, {more} after the loss"}
	sessionReady   = &kind{"session_ready", "session {session} is ready"}
	sessionDone    = &kind{"session_done", "session {session} has ended, ready for {more}: {cause}"}
	sessionVain    = &kind{"session_done", "session {session} was never ready and has ended: {cause}"}
	rotateStart    = &kind{"rotate_start", "session {session} is to be replaced: {cause}"}
	rotateDone     = &kind{"rotate_done", "session {session} was replaced within {took}"}
	rotateFailed   = &kind{"rotate_failed", "session {session} was not replaced: {cause}"}
	waitStart      = &kind{"wait", "waits for {took} before try {try}"}
	waitAsked      = &kind{"wait", "waits for {took} before try {try}, {more} of it because the server asked for that"}
	waitLogin      = &kind{"wait", "waits for {took} before try {try}: {cause}"}
	kicked         = &kind{"kicked", "the wait was cut short after {took}"}
	probeDone      = &kind{"probe_done", "a probe was answered after {took}"}
	probesDone     = &kind{"probe_done", "{count} probes were answered, the last after {took}"}
	probeFailed    = &kind{"probe_failed", "a probe has failed after {took}: {cause}"}
	slowHandler    = &kind{"slow_handler", "{cause} has run for {took}"}
	overdue        = &kind{"overdue", "{cause} has not returned for {took}"}
	ended          = &kind{"end", "it has ended: {cause}"}
)

// public returns e as it is shown.
func (e *event) public() eventInfo {
	r := eventInfo{
		Time: time.Unix(0, e.at), Kind: e.kind.name, Session: e.session, Try: int(e.try), Took: seconds(e.took), Count: int(e.count),
	}
	cause := ""
	if e.cause != nil {
		r.Reason, cause = e.cause.Reason, e.cause.Text
	}
	r.Text = strings.NewReplacer("{session}", fmt.Sprint(e.session), "{try}", fmt.Sprint(e.try), "{count}", number(e.count),
		"{took}", r.Took.String(), "{more}", seconds(e.more).String(), "{cause}", cause).Replace(e.kind.text)
	if e.kind.name == waitStart.name {
		r.Verdict = e.class.String()
		if e.class != backoff.ClassOK {
			r.Text += " (verdict: " + r.Verdict + ")"
		}
	}
	return r
}
