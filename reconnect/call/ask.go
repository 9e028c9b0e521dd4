package call

import (
	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
)

// Ask sends a request while a session is opened, such as the login, and returns the response, whose data
// belongs to the caller. Call Ask in OnSession and Layer.Open, where Do returns [ErrInCallback], in the
// goroutine that may use o. It passes messages that come before the response to [reconnect.Opening.Deliver].
// The request does not count as one of the Client's: its ID must differ from those of all requests in flight,
// as the numbers of Client.Next do. An error means that the session cannot be opened: return it, unless it is
// [conn.ErrBadMessage].
func (c *Client[K]) Ask(o *reconnect.Opening, id K, request conn.Message) (conn.Message, error) {
	if err := o.Write(request); err != nil {
		return conn.Message{}, err
	}
	for {
		m, err := o.Read()
		if err != nil {
			return conn.Message{}, err
		}
		if got, ok := c.o.ID(reconnect.Message{Message: m, Session: o.Session}); ok && got == id {
			return m, nil
		}
		if err := o.Deliver(m); err != nil {
			return conn.Message{}, err
		}
	}
}
