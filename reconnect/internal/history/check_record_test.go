package history

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/coder/websocket"

	"github.com/redial-go/redial/conn/conntest"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/budget"
)

// recordOf is what is known of a run. world.mu guards it.
type recordOf struct {
	sessions   map[uint64]*session
	messages   map[string]*message
	pipes      map[*conntest.Pipe]*pipe
	pipeOf     map[*websocket.Conn]*conntest.Pipe
	dead       []*conntest.Pipe // connections that were stalled for good when the faults ended
	pending    map[string]func(ctx context.Context)
	reports    map[string]int // how often a callback was reported as slow, by SlowHandler.What
	reporters  int            // calls of SlowHandler and Overdue that block now
	reportedAt time.Duration  // when such a call has last ended
	acting     int            // callbacks that are doing what was planned
	peers      map[uint64]*peer

	started     uint64 // sessions
	dials       []time.Duration
	ended       map[string]int         // events by name
	readCount   int                    // messages that were read
	said        int                    // messages that the server has begun to send
	statuses    map[int]bool           // of answers that are not in refusals
	ages        map[time.Duration]bool // at which sessions were replaced because of their age
	connDone    bool
	drawn       map[time.Duration]int
	waiting     time.Duration // what WaitStart announced; -1: no wait is under way
	waitFrom    time.Duration
	closedAt    time.Duration   // when Close was called, which Shutdown may have preceded; 0: not yet
	closedReady bool            // a session was ready then
	askedUntil  time.Duration   // the end of the longest wait that a server has requested, also in a close frame
	advisedAt   time.Duration   // a close frame has allowed no dial before
	restartAt   time.Duration   // a close frame before a reset has allowed no dial before
	shut        time.Duration   // when Shutdown was called, or 0
	logins      *budget.Logins  // or nil
	closing     time.Duration   // when Shutdown or Close was called, whichever was first; 0: not yet
	mayEnd      string          // why the Conn may end by itself
	notBefore   time.Duration   // when the server allows the next dial
	gated       time.Duration   // until then the gate may hold dials: when two dials are under way, the server may have told one of them to wait
	checked     time.Duration   // when Check was called last
	pushes      []time.Duration // when kicks and the like came, which allow more dials
	meddled     map[uint64]bool // sessions that were ended, or asked to end, on our side
	exceeds     *rand.Rand      // draws the message of each session that is too large, or nil
	bigs        int             // sessions in a row that such a message has ended
	rotated     bool
	replaced    uint64                // session that the last rotation replaces
	turning     bool                  // since the last rotation began no session was ready
	rotations   []time.Duration       // when they began
	dialing     map[int]time.Duration // when the dials that do not hang have begun, by try
	refuses     *loginRefusal         // of each login, or nil
	exited      bool                  // a callback has ended its goroutine
	exits       []string              // the names of such callbacks
	allowedAt   time.Duration         // when Allowed was true
	markHeld    map[uint64]bool       // the mark of a session is held
	rotateDone  time.Duration         // when the last rotation had ended
	blocked     bool                  // a callback has blocked
	held        bool                  // OnMessage, or another callback, may have taken long
	contexts    map[string]context.Context
	traffic     int // lines of the trace that are messages

	order       int // of acceptance
	unsent      []reconnect.Receipt
	inMessage   bool
	inReceipt   bool
	dropped     int    // as seams say
	gaps        int    // messages that were missing inside a session
	readSession uint64 // of the last message that was read
	seamAfter   uint64 // the last session whose seam was read
	lost        int    // as seams say
	marks       map[uint64]int
	have        int // the last event that the application knows of; -1: it knows nothing for certain
	silentUntil time.Duration
	readPause   time.Duration // the reader reads nothing before
	endTakes    time.Duration // how long the reader takes for each message at the end
	made        []*loginMade
	loginWait   bool        // the last wait was for a login
	advices     int         // so many have named an address
	advised     map[int]int // dials at the address of an advice
	verdicts    verdicts
	stalls      int // sessions in a row that have ended as stalled, without a message
	networkRecord
}

// session is one session as the trace, the server and the reader see it.
type session struct {
	number         uint64
	started, ready bool
	opened         bool // OnSession has returned nil
	done           bool
	seam           bool // the reader got it
	startedAt      time.Duration
	progressAt     time.Duration // when its OpenTimeout began again last
	readyAt        time.Duration
	reason         backoff.Reason // of the end
	endedAt        time.Duration
	lostAt         time.Duration // when Layer.Lost was called; -1: not yet
	departedAt     time.Duration // when the server saw the end, or 0
	delivered      bool          // a message was handed to the reader in OnSession
	delivering     bool          // Deliver was called
	probes         int
	logins         int
	sent           []int // the events that the server has begun to send, in order
	wrote          int   // how many of them it has written
	burst          bursts
	ahead          map[uint64]position // what the server had written to the other sessions when this one logged in
	read           int                 // messages that the reader got
	next           int                 // the next message that the reader expects
	heard          time.Duration
	pipe           *conntest.Pipe
	contexts       []context.Context // of callbacks
	end            *told             // first report of its end, by the seam or by SessionDone, or nil
	jumps          int               // of the clock, before it was ready
	lastOrder      int               // of the messages that arrived
	words          *lastWords        // what is due before the seam, or nil
	written        int               // the greatest message.after of the writes that arrived
}

// message is one message of the user.
type message struct {
	id       string
	size     int
	order    int // of acceptance by Send; 0: by Write
	after    int // the order of the last message that Send had accepted before this Write
	out      reconnect.Outgoing
	sentAt   time.Duration // time of Send, or 0 if it was given to Write or SendWait
	due      time.Duration // no write may begin later; 0: ever
	accepted bool
	refused  bool
	bad      bool // no frame can hold it
	late     bool // the session for which it is had ended before it was given to Send
	fates    []reconnect.Fate
	err      error
	arrivals []uint64      // the sessions by which it came, whole
	came     time.Duration // when it came last
	begun    bool          // the server got a part of it
}

// pipe is one connection, and the faults that it had.
type pipe struct {
	session uint64
	faults  []fault
	broken  bool          // the server has broken the protocol
	closed  int           // the close code that the server has read; 0: none
	stopped bool          // the server has read no close code, because it was closed before
	thawed  bool          // a stall has ended
	refused time.Duration // when the session ended because the server has broken the protocol; 0: it did not
	pace
}

type fault struct {
	kind string
	at   time.Duration
}

func newRecord() recordOf {
	return recordOf{
		sessions: make(map[uint64]*session),
		messages: make(map[string]*message),
		pipes:    make(map[*conntest.Pipe]*pipe),
		pipeOf:   make(map[*websocket.Conn]*conntest.Pipe),
		pending:  make(map[string]func(context.Context)),
		reports:  make(map[string]int),
		peers:    make(map[uint64]*peer),
		ended:    make(map[string]int),
		statuses: make(map[int]bool),
		dialing:  make(map[int]time.Duration),
		ages:     make(map[time.Duration]bool),
		drawn:    make(map[time.Duration]int),
		waiting:  -1,
		meddled:  make(map[uint64]bool),
		markHeld: make(map[uint64]bool),
		contexts: make(map[string]context.Context),
		marks:    make(map[uint64]int),
		have:     -1,
		advised:  make(map[int]int),
		networkRecord: networkRecord{
			announced: -1,
			moved:     make(map[*conntest.Pipe]bool),
			asked:     make(map[*conntest.Pipe]bool),
		},
	}
}

// of returns the record of a session.
func (r *recordOf) of(number uint64) *session {
	s := r.sessions[number]
	if s == nil {
		s = &session{number: number, lostAt: -1}
		r.sessions[number] = s
	}
	return s
}

// piped returns the record of a connection.
func (r *recordOf) piped(p *conntest.Pipe) *pipe {
	rec := r.pipes[p]
	if rec == nil {
		rec = &pipe{}
		r.pipes[p] = rec
	}
	return rec
}
