package history

import "fmt"

// Invariant is something that must hold in every history.
type Invariant string

// The invariants. The number is that of the promise in package reconnect.
const (
	AtMostTwoConnections   Invariant = "1: at most two connections exist; one with OneConnection"
	AtMostTwoDials         Invariant = "1: at most two dials are under way; one with OneConnection"
	OneLogin               Invariant = "1: one login is sent for each session, and it is the first message"
	SessionsCount          Invariant = "1: sessions are numbered from 1, without a gap"
	WaitIsJittered         Invariant = "2: no two waits of a policy with jitter are the same"
	WaitWithinPolicy       Invariant = "2: a drawn wait is at most the cap of the policy"
	WaitIsKept             Invariant = "2: a wait takes what was announced, unless it is kicked or all ends"
	NoHotLoop              Invariant = "3: no more dials in a minute than the law allows"
	WaitGrows              Invariant = "3: what has earned nothing makes the waits grow"
	VerdictAsStated        Invariant = "9: the verdict on a failure is the stated one"
	SpreadOnce             Invariant = "2: StartSpread delays the first dial only"
	StableIsEarned         Invariant = "3: the waits begin again after a session that was long enough, and only then"
	DialsAccept            Invariant = "3: the machine that decides about dials accepts the history"
	HandoverAccepts        Invariant = "the handover: each of its changes is one of the walk"
	LineAccepts            Invariant = "the line: each permit is given when it is due, in order, and its Status is true"
	QueueAccepts           Invariant = "the queue: its items keep their order, and its counts are right"
	ReadyAfterLogin        Invariant = "4: a session is ready only when OnSession has returned"
	OpeningIsBounded       Invariant = "4: OnSession ends within OpenTimeout after its beginning or its last progress"
	LoginBeforeMessages    Invariant = "4: nothing reaches the server before the login"
	OneSeam                Invariant = "5: one seam for each session that was ready or delivered something"
	SeamInPlace            Invariant = "5: the seam comes after the last message of its session and before the next"
	NothingMissing         Invariant = "5: inside a session no message is missing, except where a seam says so"
	WholeMessages          Invariant = "5: a received message is one that the server sent, whole, in that session"
	DroppedAreCounted      Invariant = "5: a seam says how many messages were dropped"
	MarkIsSafe             Invariant = "5: no event is missing between a refetch at the mark and the live stream"
	OneMark                Invariant = "5: at most one mark for each session, while that session lives"
	OneFate                Invariant = "6: a message that was accepted has one fate"
	DroppedNeverArrives    Invariant = "6: of a dropped message not a byte reaches the server"
	NotTwice               Invariant = "6: a message arrives twice only if it is Repeatable"
	WrittenWhole           Invariant = "6: the server gets no message that nobody sent"
	DeadlineKept           Invariant = "6: no write begins after the deadline or the age of the message"
	OrderKept              Invariant = "6: what was accepted first arrives first by each connection"
	NotOvertaken           Invariant = "6: a Write does not overtake what Send has accepted before"
	WrittenInOrder         Invariant = "6: what was accepted first is written first, by whatever connection"
	ItsSessionOnly         Invariant = "6: a message with a Session arrives by that session only"
	BadIsBad               Invariant = "6: a message is refused as bad only if its frame has no room for it, and then it always is"
	LastMessageArrives     Invariant = "6: without faults a message is written and arrives"
	PaceKept               Invariant = "6: no interval has more messages and pings than Pace allows"
	WriteEndsInTime        Invariant = "7: Write returns when its context ends"
	ContextOfItsOwn        Invariant = "7: Write and Read return the error of a context only if it was their own"
	CancelHarmless         Invariant = "7: no session ends because a context of Read or Write has ended"
	SilentOnlyAfterProbes  Invariant = "8: a silent peer is cut only after two probes, and after the limit"
	DeathIsNoticed         Invariant = "8: a connection that is dead is given up"
	LivePeerIsKept         Invariant = "8: a peer that answers in time is not cut, whatever the wall clock does"
	PatientWithLateAnswers Invariant = "8: a peer that answers within 5 times the limit is cut at most 3 times in a row"
	SuspendIsNoticed       Invariant = "8: after the machine was suspended a dead connection is given up at the next look, or a third of the limit later"
	GoneAddressIsNoticed   Invariant = "8: Check gives up a connection whose local address is gone"
	CauseIsTrue            Invariant = "9: the cause of the end is the fault that ended it"
	RetryAfterKept         Invariant = "9: no dial comes before the time that the server asked for"
	RetryAfterRead         Invariant = "9: the time that the server asks for is read, in each form"
	AdvisedOnce            Invariant = "9: an address that was advised is dialed at most once, and never if it has a user"
	SecretsStayHome        Invariant = "13: only the host of the URL gets its password"
	ClientKeeps            Invariant = "what the client writes keeps to the protocol"
	AwaitIsTrue            Invariant = "12: AwaitReady ends when a session is ready, when somebody has to mend something, or with its context"
	EndedIsRefused         Invariant = "6: a message for a session that has ended is refused"
	SilentAfterClose       Invariant = "11: no message is handed over after Close"
	RotatesAtAnyAge        Invariant = "a session is replaced at an age of 0.9 to 1 of After, and no two at the same age"
	HintOfAdvice           Invariant = "9: a dial at an advised address has the hint of that advice"
	OnlyGoneEnds           Invariant = "9: of a server's answers only 410 ends a Conn"
	InboxBounded           Invariant = "10: no more messages are unread than the inbox may have"
	OutboxBounded          Invariant = "10: no more messages wait than the outbox may have"
	NothingLeft            Invariant = "11: when Done is closed no connection is open"
	CloseAtOnce            Invariant = "11: Close returns at once"
	ShutdownInTime         Invariant = "11: Shutdown returns when its context ends at the latest"
	UnsentIsComplete       Invariant = "11: Shutdown returns the messages that were not sent"
	EndsSoon               Invariant = "11: after Close a Conn ends when its callbacks have"
	ContextEnds            Invariant = "11: the context of a callback ends with the Conn"
	StateIsNewest          Invariant = "12: in SessionReady the session has opened, after Done the state is closed"
	EventsPaired           Invariant = "12: each event of a beginning has one of an end"
	NothingAfterTheEnd     Invariant = "12: no event comes after ConnDone, but Overdue"
	NoSecrets              Invariant = "13: no error has a secret in it"
	OneCallback            Invariant = "14: OnMessage and OnSeam are called one at a time, and so is OnReceipt"
	StatsAreTrue           Invariant = "Stats are what has happened"
	Recovers               Invariant = "without faults a session becomes ready"
	Stays                  Invariant = "without faults the session stays, and nothing is dialed"
	TimersAsStated         Invariant = "while nothing happens probes and keep-alives come as often as stated"
	GateLimits             Invariant = "gate: no more permits than its limits allow"
	OneProbeAtATime        Invariant = "gate: while the host is down there is one dial at a time"
	PermitReturnedOnce     Invariant = "gate: each permit is returned, and once"
	LoginsBounded          Invariant = "logins: no more in any interval than the budget allows"
	LoginLeftAtDial        Invariant = "logins: no dial begins while none is left"
	WaitForLogin           Invariant = "logins: the wait ends when one is left, and the Status shows it"
	RefusedIsSlow          Invariant = "refusals: after a close code of a refused login the wait is a slow one, and 4401 is tried again once"
	NoSuchHostIsSlow       Invariant = "refusals: from the second answer on that there is no such host the wait is a slow one"
	OutlookIsTrue          Invariant = "gate: the Status says what those that wait for a probe wait for"
	SlowIsSlow             Invariant = "12: no handler is called slow before a third of the limit is over"
	Quiet                  Invariant = "while nothing happens there are few events"
)

// Invariants are all of them.
var Invariants = []Invariant{
	AtMostTwoConnections, AtMostTwoDials, OneLogin, SessionsCount, WaitIsJittered,
	WaitWithinPolicy, WaitIsKept, NoHotLoop, ReadyAfterLogin, OpeningIsBounded,
	LoginBeforeMessages, OneSeam, SeamInPlace, NothingMissing, WholeMessages,
	DroppedAreCounted, MarkIsSafe, OneMark, OneFate, DroppedNeverArrives,
	NotTwice, WrittenWhole, DeadlineKept, OrderKept, ItsSessionOnly,
	SessionIsReady, ReceiptsAreThere, MarkIsHeld, RotatesWhenAllowed, VerdictAsStated, SpreadOnce, SecretsStayHome, ClientKeeps, AwaitIsTrue, EndedIsRefused, SilentAfterClose, RotatesAtAnyAge,
	BadIsBad, LastMessageArrives, WriteEndsInTime, ContextOfItsOwn, CancelHarmless, SilentOnlyAfterProbes,
	DeathIsNoticed, CauseIsTrue, RetryAfterKept, OnlyGoneEnds, InboxBounded,
	OutboxBounded, NothingLeft, CloseAtOnce, ShutdownInTime, UnsentIsComplete,
	EndsSoon, ContextEnds, StateIsNewest, EventsPaired, NothingAfterTheEnd,
	NoSecrets, OneCallback, StatsAreTrue, Recovers, Stays,
	SilentInTime, KickBeside, HungInTime, RotationPace, ReplacedInTime, SentInTime, CutBeforeLogin, SeamBeforeDone,
	ContextOfPast, ExitIsNamed, AdviceKept, ExpiresInTime,
	HeardBeforeReset, GoodbyeIsCause, GoodbyeIsObeyed,
	LimitedCostsLess, HealthyStay, HealthyReturn,
	CallsReturn, TooLargeIsSlow, TenShortWaits, RefreshIsSoon, DrainIsKept,
	StuckWriteEnds, EndlessMessageEnds, CloseIsBounded,
	KickDials, NoWaitInReceipt, AwaitSees, ReservationEnds, RefusedAtShutdown, DialBesideHung, KeptIsOurs,
	SlowIsReported, CanceledWriteIsSilent, EachHasGoodbye, CancelEnds, ReadEndsAtClose, HeardBeforeShutdown,
	OverlapIsWhole,
	WatchSees, EndIsOne, OverlapIsTrue, StallIsStated, SlowIsSlow, Quiet, LivePeerIsKept, PatientWithLateAnswers, SuspendIsNoticed, GoneAddressIsNoticed,
	RetryAfterRead, TimersAsStated, GateLimits, OneProbeAtATime, PermitReturnedOnce,
	WaitGrows, StableIsEarned, NotOvertaken, WrittenInOrder, PaceKept, DialsAccept, RotatedDialsAccept,
	HandoverAccepts, LineAccepts, QueueAccepts,
	LoginsBounded, LoginLeftAtDial, WaitForLogin,
	AdvisedOnce, HintOfAdvice, RefusedIsSlow, NoSuchHostIsSlow, OutlookIsTrue,

	HeldIsAgreed, WantedStays, HeldIsWanted, RemovalHasReason, NoAnswerAsksAgain,
	InTheBatch, AnswerIsTaken, FewAnswersDue, AskWaits, BackoffIsTold, WaitEnds, AskedAgain,
	TopicMarkIsSafe, TopicNothingMissing, RemovedIsSilent, EssentialBeforeReady,

	OwnAnswer, QuestionEnds, QuestionError, UnsentNeverArrives, AskedOnce,
	ErrorNamesSession, LostSaysWhy, RepeatableStays, LostAtOnce, RepeatedFirst, LateIsNotRead, InFlightBounded,
	CallStats, InCallback, LastIsAnswered,

	OneOutcome, AckedIsThere, InOrderOfAdd, NotAfterAck, NotWhatItHas, OnceBySession,
	StoredBeforeSent, NumbersOnce, LedgerBounded, AllIsDelivered, SurvivesCrash,
	ExactlyOnce, NotTooOld, NumbersAfterCrash,

	ItemOnce, ItemInPlace, ItemIsTrue, StaleAfterSeam, StaleThenHealed,
	HealedIsComplete, LossHasReason, HoldBounded, FetchesBounded, FetchWaits, FetchesEnd,
	OthersPass, OneRange, StreamsComplete, RetryWaits,

	ClosedOnce, NotBeforeTold, LeadIsQuiet, ClosedInWindow, OneInASlot,
	AllHaveGone, ReturnsAtOnce, HurriedAtOnce, HurryIsShort, ClosersBounded,
	AgeKept, RefusedInWindow, ReadyIsTrue, DrainStats,
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant Invariant
	Detail    string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s", v.Invariant, v.Detail) }

// Result is what came of a plan.
type Result struct {
	Violations []Violation
	Trace      []string          // what happened, one line each, in the order of time
	Stakes     map[Invariant]int // how often each invariant was checked
	Events     map[string]int    // how many events of each kind have happened
	Seconds    float64           // virtual
}

// check notes that an invariant was at stake, and that it was violated if ok is false. The caller holds w.mu.
func (w *world) check(i Invariant, ok bool, format string, args ...any) {
	w.result.Stakes[i]++
	if !ok && len(w.result.Violations) < 20 {
		w.result.Violations = append(w.result.Violations, Violation{i, fmt.Sprintf("at %v: ", w.now()) + fmt.Sprintf(format, args...)})
	}
}

// claim is check for a caller that does not hold w.mu.
func (w *world) claim(i Invariant, ok bool, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.check(i, ok, format, args...)
}
