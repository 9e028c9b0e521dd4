package call

import (
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Ask asks a question while a session is opened, such as the login, and returns the answer, whose
// data belongs to the caller. It is for OnSession and Layer.Open, in the goroutine that may use o,
// where Do returns [ErrInCallback]. What comes before the answer is passed on by
// [reconnect.Opening.Deliver]. The question is not in the table: its id must be that of no other
// question in flight, as those of [Table.Next] are. An error means that the session cannot be opened:
// return it, unless it is [conn.ErrBadMessage].
func (t *Table[K]) Ask(o *reconnect.Opening, id K, question conn.Message) (conn.Message, error) {
	if err := o.Write(question); err != nil {
		return conn.Message{}, err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return conn.Message{}, err
		}
		if got, ok := t.o.ID(reconnect.Message{Message: m, Session: o.Session}); ok && got == id {
			return m, nil
		}
		if err := o.Deliver(m); err != nil {
			return conn.Message{}, err
		}
	}
}
