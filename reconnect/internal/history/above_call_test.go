package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// The invariants of a call.Client.
const (
	OwnAnswer          Invariant = "call: a question gets its own answer, from the session that sent it"
	QuestionEnds       Invariant = "call: when the Conn has ended no question is without an end"
	QuestionError      Invariant = "call: a question ends with an answer, a LostError or an Error, for a reason that the package names"
	UnsentNeverArrives Invariant = "call: of a question that was not sent not a byte reaches the server"
	AskedOnce          Invariant = "call: a question that is not Repeatable arrives once, and another one once by each session"
	ErrorNamesSession  Invariant = "call: an error has the session by which the question went last"
	LostSaysWhy        Invariant = "call: a LostError has the cause of the end of its session"
	RepeatableStays    Invariant = "call: a Repeatable question does not end with its session"
	LostAtOnce         Invariant = "call: a question is lost at the instant at which its session ends"
	RepeatedFirst      Invariant = "call: questions that go again go first, in the order in which they were asked"
	LateIsNotRead      Invariant = "call: an answer does not reach the reader"
	InFlightBounded    Invariant = "call: no more questions than InFlight are without an answer"
	CallStats          Invariant = "call: each question is counted once, by its end"
	InCallback         Invariant = "call: Do in a callback ends at once"
	LastIsAnswered     Invariant = "call: without faults a question is answered"
)

// questions is a call.Client, with a server that answers by id.
type questions struct {
	nothing
	w        *world
	client   *call.Client[string]
	inFlight int
	cancel   context.CancelFunc
	ctx      context.Context // ends when all questions must have ended

	// world.mu guards what follows.
	all    []*question
	lostAt map[uint64]time.Duration // when sessions have ended
	causes map[uint64]error         // and why
	calls  int                      // of Do that have returned
}

// question is one question. Its text has its place in questions.all, so that an answer shows to which question it belongs, whatever
// the id.
type question struct {
	number     int
	id         string
	repeatable bool
	reused     bool // other questions may have the id
	pinned     bool // it has a Session
	asked      time.Duration
	begun      bool     // the server got a part of it
	arrivals   []uint64 // the sessions by which it came
	crossed    uint64   // the session whose answer came before the question was there; 0: none
	crossedAt  time.Duration
	ended      bool
	refused    bool // it was not admitted
}

func newQuestions(w *world) *questions {
	r := w.plan.stream(actorAboveOptions)
	q := &questions{w: w, inFlight: 2 + r.IntN(8), lostAt: make(map[uint64]time.Duration), causes: make(map[uint64]error)}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	client, err := call.New(&call.Options[string]{ID: answerID, InFlight: q.inFlight})
	if err != nil {
		panic(err)
	}
	q.client = client
	return q
}

func answerID(m reconnect.Message) (string, bool) {
	words, ok := unframed(string(m.Data))
	if !ok || words[0] != "ans" {
		return "", false
	}
	return words[1], true
}

func (q *questions) options(o *reconnect.Options) {
	o.Layers = append(o.Layers, &reconnect.Layer{Lost: q.lost}, q.client.Layer())
}

func (q *questions) lost(session uint64, cause error) {
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	q.lostAt[session], q.causes[session] = q.w.now(), cause
}

// The user.

func (q *questions) step(r *rand.Rand, e Event) {
	w := q.w
	if r.IntN(10) == 0 {
		w.actNext("OnMessage", func(ctx context.Context) {
			at := w.now()
			_, err := q.client.Do(ctx, call.Request[string]{ID: fmt.Sprint("c", e.Index), Message: conn.TextMessage(framed("ask", "c", -1))})
			w.claim(InCallback, errors.Is(err, call.ErrInCallback) && call.Unsent(err) && w.now() == at, "after %v: %v", w.now()-at, err)
			w.mu.Lock()
			q.calls++
			w.mu.Unlock()
		})
		return
	}
	for range 1 + r.IntN(6) {
		seed := r.Uint64()
		w.users.Go(func() { q.ask(rand.New(rand.NewPCG(seed, 0)), q.ctx) })
		time.Sleep(1 + upTo(r, 50*time.Microsecond))
	}
}

// ask asks a question, and checks how it ends.
func (q *questions) ask(r *rand.Rand, ctx context.Context) {
	w := q.w
	w.mu.Lock()
	n := &question{number: len(q.all), repeatable: r.IntN(2) == 0, asked: w.now()}
	if n.id = fmt.Sprint("q", n.number); r.IntN(3) == 0 {
		n.id, n.reused = fmt.Sprint("r", r.IntN(2)), true
	}
	q.all = append(q.all, n)
	w.remark("question %d: %s, %t", n.number, n.id, n.repeatable)
	w.mu.Unlock()
	var limit time.Duration // 0: none
	switch r.IntN(4) {
	case 0, 1:
		limit = 1 + upTo(r, 15*time.Second)
	case 2:
		limit = 1 + upTo(r, 400*time.Millisecond)
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	request := call.Request[string]{ID: n.id, Message: conn.TextMessage(framed("ask", n.id, n.number)), Repeatable: n.repeatable}
	if !n.repeatable && r.IntN(5) == 0 {
		request.Session = w.conn.Status().Session
		w.mu.Lock()
		n.pinned = request.Session != 0
		w.mu.Unlock()
	}
	m, err := q.client.Do(ctx, request)
	stats := q.client.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	q.calls++
	n.ended = true
	w.check(InFlightBounded, stats.InFlight <= q.inFlight && stats.Reserved <= q.inFlight, "%+v, and InFlight is %d", stats, q.inFlight)
	w.secrets(err)
	w.remark("question %d ends: %s", n.number, how(err))
	if err == nil {
		words, ok := unframed(string(m.Data))
		mine := ok && len(words) == 3 && words[1] == n.id && atoi(words[2]) == n.number
		// Beyond InFlight an id that was given up is free again, and so its answer looks like the new one.
		forgotten := n.reused && stats.Forgotten > 0
		own := slices.Contains(n.arrivals, m.Session)
		if !own && q.goesAgain(n) {
			n.crossed, n.crossedAt, own = m.Session, w.now(), true
		}
		w.check(OwnAnswer, forgotten || mine && own, "question %d, which came by %v: %q of %d", n.number, n.arrivals, m.Data, m.Session)
		return
	}
	lost, isLost := errors.AsType[*call.LostError](err)
	wrong, isWrong := errors.AsType[*call.Error](err)
	w.check(QuestionError, isLost != isWrong, "question %d: %T, %v", n.number, err, err)
	w.check(UnsentNeverArrives, !call.Unsent(err) || !n.begun, "question %d was not sent, and came: %v", n.number, err)
	session := uint64(0)
	if isLost {
		session = lost.Session
		cause := q.causes[session]
		w.check(LostSaysWhy, len(n.arrivals) == 0 || n.pinned || cause == nil || errors.Is(lost.Err, cause), "question %d of session %d, which has ended because of %v: %v", n.number, session, cause, lost.Err)
	} else if isWrong {
		session = wrong.Session
	}
	w.check(ErrorNamesSession, len(n.arrivals) == 0 || session >= slices.Max(n.arrivals), "question %d, which came by %v: session %d, %v", n.number, n.arrivals, session, err)
	switch {
	case isWrong:
		n.refused = errors.Is(err, call.ErrTooMany) || errors.Is(err, call.ErrIDInUse)
		w.check(QuestionError, n.refused || errors.Is(err, net.ErrClosed) && w.closedOrMay() || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)), "question %d: %v", n.number, err)
		w.check(QuestionError, !errors.Is(err, call.ErrIDInUse) || n.reused, "question %d: %v", n.number, err)
		atOnce := w.now() == n.asked || errors.Is(err, call.ErrIDInUse) // which depends on the session, and so waits for the turn in the line
		w.check(QuestionError, !n.refused || wrong.Fate == reconnect.FateDropped && atOnce, "question %d: %+v", n.number, wrong)
	case isLost:
		w.check(RepeatableStays, !n.repeatable || errors.Is(err, net.ErrClosed), "question %d: %v", n.number, err)
		w.check(QuestionError, !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled), "question %d: %v", n.number, err)
		if errors.Is(err, reconnect.ErrSessionLost) && len(n.arrivals) > 0 {
			at, ended := q.lostAt[lost.Session]
			w.check(LostAtOnce, w.exited || ended && at == w.now(), "question %d of session %d, which has ended: %t, at %v: %v", n.number, lost.Session, ended, at, err)
		}
	}
}

// goesAgain reports whether a question may be on its way by a session after the one by which it came. A question ends with the first
// message that has its id, from the session that sent the question: so also with an answer that serve has sent before the question
// was there. Then finish checks that the question was on its way. The caller holds w.mu.
func (q *questions) goesAgain(n *question) bool {
	if !n.repeatable || len(n.arrivals) == 0 {
		return false
	}
	_, ended := q.lostAt[n.arrivals[len(n.arrivals)-1]]
	return ended
}

// closedOrMay reports whether the Conn may have ended. The caller holds w.mu.
func (w *world) closedOrMay() bool { return w.closing > 0 || w.mayEnd != "" }

// how is the end of a question in the trace.
func how(err error) string {
	if _, ok := errors.AsType[*call.LostError](err); ok {
		return fmt.Sprint("lost, unsent: ", call.Unsent(err))
	}
	if err != nil {
		return fmt.Sprint("error, unsent: ", call.Unsent(err))
	}
	return "answer"
}

func (q *questions) hear(session uint64, words []string) {
	q.w.check(LateIsNotRead, false, "%v by %d", words, session)
}

func (q *questions) rest() {
	w := q.w
	stats := q.client.Stats()
	w.claim(InFlightBounded, stats.InFlight <= q.inFlight && stats.Reserved <= q.inFlight, "%+v, and InFlight is %d", stats, q.inFlight)
	if w.set.RotateAfter != 0 || stats.InFlight == q.inFlight { // a question without a limit may have lost its answer
		return
	}
	ctx, cancel := context.WithTimeout(q.ctx, 2*time.Minute)
	defer cancel()
	w.mu.Lock()
	n := &question{number: len(q.all), id: "last", repeatable: true, asked: w.now()}
	q.all = append(q.all, n)
	w.mu.Unlock()
	_, err := q.client.Do(ctx, call.Request[string]{ID: n.id, Message: conn.TextMessage(framed("ask", n.id, n.number)), Repeatable: true})
	w.mu.Lock()
	defer w.mu.Unlock()
	q.calls++
	n.ended = true
	w.check(LastIsAnswered, err == nil || w.closedOrMay(), "%v", err)
}

func (q *questions) over() {
	w := q.w
	time.Sleep(time.Millisecond)
	w.mu.Lock()
	for _, n := range q.all {
		w.check(QuestionEnds, n.ended, "question %d, which was asked at %v", n.number, n.asked)
	}
	w.mu.Unlock()
	q.cancel()
}

func (q *questions) finish() {
	w := q.w
	s := q.client.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(CallStats, s.InFlight == 0 && s.Asked == s.Answered+s.Lost+s.GivenUp, "%+v", s)
	w.check(CallStats, s.Asked+s.Refused <= uint64(q.calls), "%+v, of %d", s, q.calls)
	w.check(LateIsNotRead, true, "") // hear finds a violation
	for _, n := range q.all {
		w.check(UnsentNeverArrives, !n.refused || !n.begun, "question %d was refused, and came", n.number)
		if n.crossed == 0 {
			continue
		}
		// A connection that is lost soon, or has a fault, need not bring the question.
		faults := w.piped(w.of(n.crossed).pipe).faults
		sound := q.lostAt[n.crossed] > n.crossedAt+w.set.Lag+time.Second && !slices.ContainsFunc(faults, func(f fault) bool { return f.at <= n.crossedAt+w.set.Lag })
		w.check(OwnAnswer, !sound || slices.Contains(n.arrivals, n.crossed), "question %d, which came by %v, took the answer of %d", n.number, n.arrivals, n.crossed)
	}
}

// The server.

// cut notes which question has come in part. The number may be cut, too: then it may be that of another question with the same id.
func (q *questions) cut(words []string) {
	if len(words) != 3 {
		return
	}
	q.w.mu.Lock()
	defer q.w.mu.Unlock()
	var may []*question
	for _, n := range q.all {
		if n.id == words[1] && strings.HasPrefix(fmt.Sprint(n.number), words[2]) {
			may = append(may, n)
		}
	}
	if len(may) == 1 && fmt.Sprint(may[0].number) == words[2] {
		may[0].begun = true
	}
}

func (q *questions) serve(p *peer, words []string) {
	w := q.w
	calm := w.calmed.Load()
	w.mu.Lock()
	number := atoi(words[2])
	ours := words[0] == "ask" && number >= 0 && number < len(q.all) && q.all[number].id == words[1]
	w.check(WrittenWhole, ours, "nobody has asked %v", words)
	if !ours {
		w.mu.Unlock()
		return
	}
	n := q.all[number]
	w.remark("question %d arrives by %d", number, p.session)
	w.check(AskedOnce, len(n.arrivals) == 0 || n.repeatable && !slices.Contains(n.arrivals, p.session), "question %d came by %v, and by %d", number, n.arrivals, p.session)
	if again := len(n.arrivals) > 0; again && !w.rotated {
		for _, o := range q.all {
			before := slices.Contains(o.arrivals, p.session)
			w.check(RepeatedFirst, !before || o.pinned || o.asked < n.asked || len(o.arrivals) == 1 && o.asked <= w.of(p.session).readyAt,
				"question %d, which goes again and was asked at %v, after question %d of %v", number, n.asked, o.number, o.asked)
		}
	}
	n.arrivals, n.begun = append(n.arrivals, p.session), true
	w.mu.Unlock()
	r := w.plan.stream(actorAboveAnswer + uint64(number)<<20 + p.session)
	delay := 1 + upTo(r, 500*time.Millisecond)
	answer := framed("ans", n.id, number)
	fate := r.IntN(12)
	switch {
	case calm:
	case fate == 0:
		return
	case fate == 1: // late
		delay = upTo(r, 20*time.Second)
	case fate == 2 && !n.reused: // twice
		p.later(delay+1+upTo(r, 3*time.Second), answer)
	case fate == 3: // and an answer to a question of an earlier session
		w.mu.Lock()
		for _, o := range q.all {
			if !o.reused && len(o.arrivals) > 0 && !slices.Contains(o.arrivals, p.session) {
				p.later(delay+time.Millisecond, framed("ans", o.id, o.number))
				break
			}
		}
		w.mu.Unlock()
	}
	p.later(delay, answer)
}
