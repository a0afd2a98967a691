"""The files of the page: all are served, and none refers to another origin."""

import re
from importlib import resources

PAGE = resources.files("pegboard.serve.http").joinpath("page")


def test_every_file_of_the_page_is_served_with_the_content_security_policy(board_uri, ask):
    names = [file.name for file in PAGE.iterdir()]
    texts = {name: PAGE.joinpath(name).read_text("utf-8") for name in names}
    named = set(re.findall(r'(?:href|src)="page/([\w.]+)"', texts["index.html"]))
    for name, text in texts.items():
        if name.endswith(".js"):
            named |= set(re.findall(r'from "\./([\w.]+)"', text))

    for name, text in texts.items():
        assert "://" not in text.replace("http://www.w3.org/2000/svg", ""), name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", text)

    responses = ask(board_uri, ("GET", "/"), *[("GET", f"/page/{name}") for name in sorted(named)])

    assert named == set(names) - {"index.html"}
    assert {response.status_code for response in responses} == {200}
    for response in responses:
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
