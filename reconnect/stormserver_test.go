package reconnect_test

import (
	"fmt"
	"strings"
	"time"
)

// admit is the server when it has read a login: it answers that.
func (s *storm) admit(login string, say func(string) error) (session uint64, ok bool) {
	if _, err := fmt.Sscanf(login, "login %d", &session); err != nil {
		s.t.Errorf("%.20q came before the login", login)
		return 0, false
	}
	s.mu.Lock()
	again := s.logins[session]
	s.logins[session] = true
	s.mu.Unlock()
	if again {
		s.t.Errorf("session %d has logged in twice", session)
	}
	return session, say(fmt.Sprint("welcome ", session)) == nil
}

// talk is the server when it counts to the client, until say fails: 32 messages one by
// one, 32 at once, and so on, and less when the storm is over.
func (s *storm) talk(session uint64, say func(string) error) {
	for i := 0; say(number(session, i)) == nil; i++ {
		switch {
		case !s.raging():
			time.Sleep(time.Second)
		case i&32 == 0:
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// number is message i of a session, which looks like no other.
func number(session uint64, i int) string {
	return fmt.Sprintf("%d %d %s", session, i, strings.Repeat(string(rune('a'+session%26)), i%7*100))
}

// doubtful reports whether data is no whole message that was written. It may be the
// beginning of one, or, if that was compressed, something that coder/websocket has made
// of bytes which it has not unmasked.
func (s *storm) doubtful(data string) bool {
	id, rest, _ := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	size, ok := s.sent[id]
	return !ok || rest != strings.Repeat("x", size)
}

// hear is the server when it has read a message, or a part of one.
func (s *storm) hear(data string, err error) {
	id, rest, named := strings.Cut(data, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if named {
		s.begun[id] = true
	}
	if err == nil {
		s.arrived[id]++
		if size, ok := s.sent[id]; !ok || rest != strings.Repeat("x", size) {
			s.t.Errorf("nobody wrote %.20q of %d bytes", data, len(data))
		}
	}
}
