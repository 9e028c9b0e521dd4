//go:build !js

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// quietRoom returns a room that prints nothing, and that only the test uses.
func quietRoom(t *testing.T, path string) *room {
	t.Helper()
	r, err := openRoom(path, func(string, ...any) {})
	require.NoError(t, err)
	t.Cleanup(func() { r.log.Close() })
	return r
}

// enter lets a client in, and returns its member and its welcome.
func (r *room) enter(t *testing.T, hello message) (*member, message) {
	t.Helper()
	m := &member{name: hello.Client, author: authorOf(hello.Client), cut: func() {}, queue: make(chan []byte, queueLength)}
	hello.Name = hello.Client
	r.join(m, hello)
	welcome := m.next(t)
	require.Equal(t, "welcome", welcome.Type)
	return m, welcome
}

func (m *member) next(t *testing.T) message {
	t.Helper()
	next, err := decode(<-m.queue)
	require.NoError(t, err)
	return next
}

// seqs returns the numbers of the lines in the queue of m.
func (m *member) seqs() (seqs []uint64) {
	for len(m.queue) > 0 {
		if what, err := decode(<-m.queue); err == nil && what.Type == "line" {
			seqs = append(seqs, what.Seq)
		}
	}
	return seqs
}

func from(first, last uint64) (seqs []uint64) {
	for i := first; i <= last; i++ {
		seqs = append(seqs, i)
	}
	return seqs
}

func (r *room) talk(m *member, first, last uint64) {
	for id := first; id <= last; id++ {
		r.say(m, id, fmt.Sprint("line ", id))
	}
}

func TestALineThatIsRepeatedIsSaidOnceAndAcknowledgedAgain(t *testing.T) {
	r := quietRoom(t, "")
	ann, _ := r.enter(t, message{Client: "ann"})
	bob, _ := r.enter(t, message{Client: "bob"})
	r.talk(ann, 1, 2)
	again, welcome := r.enter(t, message{Client: "ann", Room: r.name, Seen: 2})
	require.EqualValues(t, 2, welcome.ID)
	r.talk(again, 2, 3)
	require.Equal(t, message{Type: "ack", ID: 2}, again.next(t))
	require.Equal(t, "line", (again.next(t)).Type)
	require.Equal(t, message{Type: "ack", ID: 3}, again.next(t))
	require.Equal(t, from(1, 3), bob.seqs())
}

func TestANewerConnectionTakesThePlaceOfAnOlder(t *testing.T) {
	r := quietRoom(t, "")
	old, _ := r.enter(t, message{Client: "ann"})
	ann, _ := r.enter(t, message{Client: "ann"})
	_, open := <-old.queue
	require.False(t, open)
	r.talk(old, 1, 1)
	r.dismiss(old)
	require.Zero(t, r.seq, "a dismissed member cannot say anything")
	r.talk(ann, 1, 1)
	require.Equal(t, from(1, 1), ann.seqs())
}

func TestAClientReceivesTheLastLinesAndNoneTwice(t *testing.T) {
	r := quietRoom(t, "")
	ann, _ := r.enter(t, message{Client: "ann"})
	r.talk(ann, 1, 30)
	bob, welcome := r.enter(t, message{Client: "bob"})
	require.EqualValues(t, 20, welcome.Seq)
	require.Zero(t, welcome.Missed)
	require.Equal(t, from(21, 30), bob.seqs())
	r.dismiss(bob)
	ann.seqs()
	r.talk(ann, 31, 33)
	bob, welcome = r.enter(t, message{Client: "bob", Room: r.name, Seen: 30})
	require.EqualValues(t, 30, welcome.Seq)
	require.Equal(t, from(31, 33), bob.seqs())
}

func TestAWelcomeCountsTheMissedLinesThatAreNotInTheHistory(t *testing.T) {
	r := quietRoom(t, "")
	ann, _ := r.enter(t, message{Client: "ann"})
	r.talk(ann, 1, historyKept+40)
	bob, welcome := r.enter(t, message{Client: "bob", Room: r.name, Seen: 3})
	require.EqualValues(t, 37, welcome.Missed)
	require.EqualValues(t, 40, welcome.Seq)
	require.Equal(t, from(41, historyKept+40), bob.seqs())
}

func TestAClientOfAnotherRoomReceivesTheWholeHistory(t *testing.T) {
	r := quietRoom(t, "")
	ann, _ := r.enter(t, message{Client: "ann"})
	r.talk(ann, 1, 20)
	for _, hello := range []message{
		{Client: "bob", Room: "another", Seen: 17},
		{Client: "carol", Room: r.name, Seen: 21}, // it has seen more than there is: the log has lost its end
	} {
		m, welcome := r.enter(t, hello)
		require.Zero(t, welcome.Seq)
		require.Equal(t, from(1, 20), m.seqs())
	}
}

func TestASlowMemberIsCutOffAndTheRoomGoesOn(t *testing.T) {
	r := quietRoom(t, "")
	ann, _ := r.enter(t, message{Client: "ann"})
	slow, _ := r.enter(t, message{Client: "slow"})
	cut := false
	slow.cut = func() { cut = true }
	for id := range uint64(queueLength + 1) {
		require.False(t, cut)
		r.talk(ann, id+1, id+1)
		ann.seqs()
	}
	require.True(t, cut)
	require.Len(t, r.members, 1)
	r.talk(ann, queueLength+2, queueLength+2)
	require.Equal(t, from(queueLength+2, queueLength+2), ann.seqs())
}

func TestAnAuthorWhoIsAwayIsForgottenWhenThereAreTooMany(t *testing.T) {
	r := quietRoom(t, "")
	present, _ := r.enter(t, message{Client: "present"})
	r.talk(present, 1, 5)
	for i := range 2 * authorsKept {
		m, _ := r.enter(t, message{Client: fmt.Sprint(i)})
		r.dismiss(m)
	}
	require.Len(t, r.last, authorsKept)
	require.EqualValues(t, 5, r.last[authorOf("present")])
}

func TestARoomGoesOnFromItsLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r := quietRoom(t, path)
	ann, _ := r.enter(t, message{Client: "ann"})
	r.talk(ann, 1, 3)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	again := quietRoom(t, path)
	require.Equal(t, r.name, again.name)
	require.Equal(t, r.history, again.history)
	_, welcome := again.enter(t, message{Client: "ann", Room: r.name, Seen: 2})
	require.EqualValues(t, 3, welcome.ID)
	require.EqualValues(t, 2, welcome.Seq)
}

func TestHalfALineAtTheEndOfALogIsCutOff(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	r := quietRoom(t, path)
	ann, _ := r.enter(t, message{Client: "ann"})
	r.talk(ann, 1, 2)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(whole, `{"type":"line","seq":3,"fr`...), 0o600))
	r = quietRoom(t, path)
	ann, welcome := r.enter(t, message{Client: "ann", Room: r.name, Seen: 2})
	require.EqualValues(t, 2, welcome.ID)
	r.talk(ann, 3, 3)
	require.EqualValues(t, 3, quietRoom(t, path).seq)
}

func TestALogWithAHoleIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	lines := `{"type":"welcome","room":"r"}` + "\n" + `{"type":"line","seq":2,"id":1,"from":"1","name":"ann","text":"x"}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	_, err := openRoom(path, nil)
	require.ErrorContains(t, err, `line 2: "line" 2 follows line 0 of the room`)
}

func TestALineThatCannotBeKeptIsNotAcknowledged(t *testing.T) {
	r := quietRoom(t, filepath.Join(t.TempDir(), "log"))
	ann, _ := r.enter(t, message{Client: "ann"})
	require.NoError(t, r.log.Close())
	r.talk(ann, 1, 1)
	require.ErrorIs(t, r.failure, os.ErrClosed)
	require.Empty(t, ann.queue)
	r.run(t.Context()) // returns at once
	require.False(t, r.do(func() { panic(errors.New("the room has ended")) }))
}
