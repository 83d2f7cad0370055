package spans

import (
	"bytes"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// anyText is the message type of a request with bytes fields instead of strings. Its encoding is that
// of TracesData.
var anyText = func() protoreflect.MessageDescriptor {
	var set descriptorpb.FileDescriptorSet
	for _, file := range []protoreflect.FileDescriptor{
		common.File_opentelemetry_proto_common_v1_common_proto,
		resource.File_opentelemetry_proto_resource_v1_resource_proto,
		trace.File_opentelemetry_proto_trace_v1_trace_proto,
	} {
		described := protodesc.ToFileDescriptorProto(file)
		for _, m := range described.MessageType {
			withBytes(m)
		}
		set.File = append(set.File, described)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		panic(err)
	}
	found, err := files.FindDescriptorByName("opentelemetry.proto.trace.v1.TracesData")
	if err != nil {
		panic(err)
	}
	return found.(protoreflect.MessageDescriptor)
}()

func withBytes(m *descriptorpb.DescriptorProto) {
	for _, f := range m.Field {
		if f.GetType() == descriptorpb.FieldDescriptorProto_TYPE_STRING {
			f.Type = descriptorpb.FieldDescriptorProto_TYPE_BYTES.Enum()
		}
	}
	for _, nested := range m.NestedType {
		withBytes(nested)
	}
}

// decode reads a request with the library. It reports whether the request is valid apart from its
// strings. The request is nil if a string is not valid UTF-8.
func decode(body []byte) (request *trace.TracesData, isRequest bool) {
	loose := dynamicpb.NewMessage(anyText)
	if proto.Unmarshal(body, loose) != nil {
		return nil, false
	}
	request = &trace.TracesData{}
	if proto.Unmarshal(body, request) != nil {
		return nil, true
	}
	return request, true
}

// eachField calls visit for each field of a message.
func eachField(b []byte, visit func(number protowire.Number, written protowire.Type, value []byte)) {
	for len(b) > 0 {
		number, written, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(number, written, b[tag:])
		if size < 0 {
			return
		}
		value := b[tag : tag+size]
		if written == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		visit(number, written, value)
		b = b[tag+size:]
	}
}

// isOdd reports whether the parser can refuse a request that the library accepts: because of a group, a
// resource or scope in two parts, an ID of the wrong length, or deep nesting.
func isOdd(body []byte) (is bool) {
	groups(dynamicOf(body), &is)
	within := func(b []byte, wanted protowire.Number, visit func([]byte)) {
		eachField(b, func(number protowire.Number, written protowire.Type, value []byte) {
			if number == wanted && written == protowire.BytesType {
				visit(value)
			}
		})
	}
	inParts := func(b []byte) {
		nonEmpty := 0
		within(b, 1, func(b []byte) {
			if is = is || nonEmpty > 0; len(b) > 0 {
				nonEmpty++
			}
		})
	}
	within(body, 1, func(b []byte) {
		inParts(b)
		within(b, 2, func(b []byte) {
			inParts(b)
			within(b, 2, func(b []byte) {
				for number, length := range map[protowire.Number]int{1: 16, 2: 8, 4: 8} {
					within(b, number, func(id []byte) { is = is || len(id) != 0 && len(id) != length })
				}
			})
		})
	})
	return is || bytes.Count(body, []byte{0x2a})+bytes.Count(body, []byte{0x32}) > 20
}

func dynamicOf(body []byte) protoreflect.Message {
	m := dynamicpb.NewMessage(anyText)
	if err := proto.Unmarshal(body, m); err != nil {
		return dynamicpb.NewMessage(anyText)
	}
	return m
}

// groups looks for groups among the unknown fields.
func groups(m protoreflect.Message, found *bool) {
	eachField(m.GetUnknown(), func(_ protowire.Number, written protowire.Type, _ []byte) {
		*found = *found || written == protowire.StartGroupType
	})
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				groups(v.List().Get(i).Message(), found)
			}
		default:
			groups(v.Message(), found)
		}
		return true
	})
}

// encode encodes a request with the library.
func encode(t testing.TB, request *trace.TracesData) []byte {
	t.Helper()
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
