#include "schemas/codec.hpp"

#include <doctest/doctest.h>

using namespace schemas;

namespace {

enum class Colour { red, green };
BOOST_DESCRIBE_ENUM(Colour, red, green)

struct Point {
  int x;
  std::optional<int> y;
};
BOOST_DESCRIBE_STRUCT(Point, (), (x, y))

struct Everything {
  std::string text;
  std::optional<int> whole;
  std::optional<std::uint8_t> small;
  std::optional<std::int64_t> big;
  std::optional<std::size_t> size;
  std::optional<double> real;
  std::optional<float> single;
  std::optional<bool> flag;
  std::optional<Colour> colour;
  std::optional<std::vector<int>> list;
  std::optional<Point> point;
  std::optional<std::vector<Point>> points;
  std::optional<json::object> object;
  std::optional<json::value> any;
};
BOOST_DESCRIBE_STRUCT(Everything, (),
                      (text, whole, small, big, size, real, single, flag, colour, list, point,
                       points, object, any))

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

std::string problem_of(auto decode) {
  try {
    decode();
    return "";
  } catch (const DecodeError& bad) {
    return bad.what();
  }
}

std::string round_trip(const char* text) {
  return json::serialize(encode(decode<Everything>(json::parse(text))));
}

std::string arguments_read(const char* text) {
  return json::serialize(encode(decode_arguments<Everything>(json::parse(text).as_object())));
}

}  // namespace

TEST_CASE("what is encoded is what was decoded, without absent members") {
  for (const char* text : {
           R"({"text":"a"})",
           R"({"text":"ü","whole":-5,"small":255,"big":-9223372036854775808})",
           R"({"text":"","size":18446744073709551615})",
           R"({"text":"","flag":false,"colour":"green","list":[],"object":{"a":[null]}})",
           R"({"text":"","list":[1,2],"point":{"x":1},"points":[{"x":1,"y":2},{"x":3}]})",
           R"({"text":"","any":"x"})",
       }) {
    CAPTURE(text);
    CHECK(round_trip(text) == text);
  }
}

TEST_CASE("exact decoding ignores what it does not know, and takes null for absent") {
  CHECK(round_trip(R"({"text":"a","unknown":{"deep":[1]},"whole":null})") == R"({"text":"a"})");
  CHECK(round_trip(R"({"text":"a","whole":5.0})") == R"({"text":"a","whole":5})");
}

TEST_CASE("exact decoding names the place that is wrong") {
  struct Row {
    const char* in;
    const char* problem;
  };
  for (const Row& row : {
           Row{R"([])", "value: expected object"},
           Row{R"({})", "text: required"},
           Row{R"({"text":null})", "text: expected string"},
           Row{R"({"text":5})", "text: expected string"},
           Row{R"({"text":"","whole":"5"})", "whole: expected integer"},
           Row{R"({"text":"","whole":5.5})", "whole: expected integer"},
           Row{R"({"text":"","whole":true})", "whole: expected integer"},
           Row{R"({"text":"","whole":2147483648})", "whole: integer out of range"},
           Row{R"({"text":"","whole":1e300})", "whole: integer out of range"},
           Row{R"({"text":"","whole":-1e999})", "whole: integer out of range"},
           Row{R"({"text":"","small":256})", "small: integer out of range"},
           Row{R"({"text":"","small":-1})", "small: integer out of range"},
           Row{R"({"text":"","big":9223372036854775808})", "big: integer out of range"},
           Row{R"({"text":"","size":-1})", "size: integer out of range"},
           Row{R"({"text":"","real":"1"})", "real: expected number"},
           Row{R"({"text":"","real":1e999})", "real: number out of range"},
           Row{R"({"text":"","single":1e300})", "single: number out of range"},
           Row{R"({"text":"","flag":1})", "flag: expected boolean"},
           Row{R"({"text":"","colour":"blue"})", "colour: expected one of red green"},
           Row{R"({"text":"","colour":"red\u0000"})", "colour: expected one of red green"},
           Row{R"({"text":"","colour":1})", "colour: expected one of red green"},
           Row{R"({"text":"","list":{}})", "list: expected array"},
           Row{R"({"text":"","list":[1,"2"]})", "list[1]: expected integer"},
           Row{R"({"text":"","point":{}})", "point.x: required"},
           Row{R"({"text":"","points":[{"x":1},{"x":[]}]})", "points[1].x: expected integer"},
           Row{R"({"text":"","object":[]})", "object: expected object"},
       }) {
    CAPTURE(row.in);
    CHECK(problem_of([&] { decode<Everything>(json::parse(row.in)); }) == row.problem);
  }
}

TEST_CASE("arguments are read leniently where only one meaning is possible") {
  struct Row {
    const char* in;
    const char* read;
  };
  for (const Row& row : {
           Row{R"({"text":"","whole":"5"})", R"({"text":"","whole":5})"},
           Row{R"({"text":"","whole":"-5.0"})", R"({"text":"","whole":-5})"},
           Row{R"({"text":"","whole":5.0})", R"({"text":"","whole":5})"},
           Row{R"({"text":"","real":"2"})", R"({"text":"","real":2E0})"},
           Row{R"({"text":"","flag":"true"})", R"({"text":"","flag":true})"},
           Row{R"({"text":"","flag":"false"})", R"({"text":"","flag":false})"},
           Row{R"({"text":"","list":["1",2]})", R"({"text":"","list":[1,2]})"},
           Row{R"({"text":"","point":{"x":"1"}})", R"({"text":"","point":{"x":1}})"},
           Row{R"({"text":"","whole":null,"any":null})", R"({"text":""})"},
           // A text stays a text, whatever it looks like.
           Row{R"({"text":"5"})", R"({"text":"5"})"},
           Row{R"({"text":"","any":"5"})", R"({"text":"","any":"5"})"},
       }) {
    CAPTURE(row.in);
    CHECK(arguments_read(row.in) == row.read);
  }
}

TEST_CASE("an argument that cannot be read is named") {
  struct Row {
    const char* in;
    const char* problem;
  };
  for (const Row& row : {
           Row{R"({})", "arguments.text: required"},
           Row{R"({"text":5})", "arguments.text: expected string"},
           Row{R"({"text":null})", "arguments.text: expected string"},
           Row{R"({"text":"","whole":"five"})", "arguments.whole: expected integer"},
           Row{R"({"text":"","whole":""})", "arguments.whole: expected integer"},
           Row{R"({"text":"","whole":"5.5"})", "arguments.whole: expected integer"},
           Row{R"({"text":"","whole":"true"})", "arguments.whole: expected integer"},
           Row{R"({"text":"","whole":"99999999999"})", "arguments.whole: integer out of range"},
           Row{R"({"text":"","real":"nan"})", "arguments.real: expected number"},
           Row{R"({"text":"","real":"1e999"})", "arguments.real: number out of range"},
           Row{R"({"text":"","flag":"yes"})", "arguments.flag: expected boolean"},
           Row{R"({"text":"","flag":1})", "arguments.flag: expected boolean"},
           Row{R"({"text":"","list":[1,[]]})", "arguments.list[1]: expected integer"},
       }) {
    CAPTURE(row.in);
    CHECK(problem_of([&] { arguments_read(row.in); }) == row.problem);
  }
}

TEST_CASE("an unknown argument is refused with the known ones") {
  json::object point = json::parse(R"({"x":1,"timeout_ms":2})").as_object();
  CHECK(problem_of([&] { decode_arguments<Point>(point); }) ==
        "arguments.timeout_ms: unknown argument; known: x, y");
  CHECK(problem_of([&] { decode_arguments<Nothing>(point); }) ==
        "arguments.x: unknown argument; none are known");
  // A name of any length is the client's; a message of ours stays short and valid UTF-8.
  json::object endless;
  std::string name(99, 'a');
  for (int i = 0; i < 1000; ++i) name += "é";
  endless[name] = 1;
  CHECK(problem_of([&] { decode_arguments<Nothing>(endless); }) ==
        "arguments." + std::string(99, 'a') + "…: unknown argument; none are known");
}

TEST_CASE("a struct says what it expects, in a schema's words") {
  std::string said;
  for (const DescribedMember& member : described_names<Everything>())
    said += member.name + ":" + member.type + (member.required ? "! " : " ");
  CHECK(said ==
        "text:string! whole:integer small:integer big:integer size:integer real:number "
        "single:number flag:boolean colour:string list:array point:object points:array "
        "object:object any: ");
}
