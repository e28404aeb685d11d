"""Which options a document names as having shaped it."""

from ocria.options import ParseOptions


def result_settings(options: ParseOptions) -> dict[str, str | int | None]:
    """`generator.settings`: the options that can change the result, and no others.

    The drafter, batch size and number of workers change only the speed; the model stands beside
    the settings with its digest; furniture and page markers shape Markdown, which has no settings
    in it; a password is nobody's business.
    """
    return {
        "dpi": "auto" if options.dpi is None else options.dpi,
        "max_pixels": options.max_pixels,
        "max_tokens": options.max_tokens,
        "pages": options.pages,
    }
