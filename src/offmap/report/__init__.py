"""The HTML report: figures and tables of one run in one file."""

from offmap.report.build import Sample, section_of
from offmap.report.measures import compare
from offmap.report.model import Examples, Report, Section, SummaryTable
from offmap.report.page import write_report

__all__ = [
    "Examples",
    "Report",
    "Sample",
    "Section",
    "SummaryTable",
    "compare",
    "section_of",
    "write_report",
]
