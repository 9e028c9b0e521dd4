package reconnect

// The word link.turn says what the supervisor of a push connection is doing: a
// counter of messages, and in its lowest bits one of these. The supervisor alone
// counts. The liveness timer changes it once at most, from handling to yielded,
// and only while the handler runs: from then on it reads, into the inbox, and the
// supervisor takes messages from there.
const (
	reading  uint64 = iota // the supervisor reads
	handling               // OnMessage runs, and nobody reads
	yielded                // a stand-in reads for the rest of the session

	turnMask = 3
	nextTurn = turnMask + 1
)
