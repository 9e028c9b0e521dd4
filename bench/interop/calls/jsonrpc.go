package calls

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/call"
)

// JSONRPC asks a server that speaks JSON-RPC 2.0.
type JSONRPC struct {
	Calls *call.Client[uint64] // whose Layer belongs into the Options of a Conn
}

// NewJSONRPC returns a JSONRPC, ready for a Conn.
func NewJSONRPC() (*JSONRPC, error) {
	client, err := call.New(&call.Options[uint64]{ID: func(m reconnect.Message) (uint64, bool) {
		var head struct {
			ID     *uint64 `json:"id"`
			Method string  `json:"method"` // of the server's own questions and events
		}
		err := json.Unmarshal(m.Data, &head)
		if err != nil || head.ID == nil || head.Method != "" {
			return 0, false
		}
		return *head.ID, true
	}})
	return &JSONRPC{client}, err
}

// Ask calls a method. With again it is called again if the connection is lost, which must do no
// harm. The error is an [*RPCError], or that of [call.Client.Do].
func (j *JSONRPC) Ask(ctx context.Context, again bool, method string, params ...any) (json.RawMessage, error) {
	id := j.Calls.Next()
	question, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	m, err := j.Calls.Do(ctx, call.Request[uint64]{ID: id, Message: conn.Message{Type: conn.Text, Data: question}, Repeatable: again})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *RPCError       `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return nil, err
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return answer.Result, nil
}

// RPCError is the answer of a server that refuses.
type RPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *RPCError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }
